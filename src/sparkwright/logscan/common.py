"""Words that healthy logs are full of, and on how many of ten thousand lines they stand: bad to look for.

Counted in own recordings of vLLM 0.21.0 and llama.cpp that went well or failed (a tenth of the weight), logs of the
twin, and serving lines in the real formats; the commonest words of errors by guess.
tests/unit/causes/test_causes.py holds the rules to few lines that have to be looked at.
"""

_COUNTED = """
pid 4856 info 4854 apiserver 3265 10 3221 200 2402 11-21 2155 2026-11-02 2016 post 1945 usage 1890 id 1877 task 1869
slot 1860 http/1.1 1773 ok 1772 04 1694 batch 1509 00 1473 throughput 1455 /v1/chat/completions 1307 token 1250
#queue-req 1245 #running-req 1245 192.168.1.20 1245 prompt 1243 processing 1240 tp0 1240 cuda 1201 05 1131 error
1000 graph 964 02 903 warmup 833 avg 830 rate 830 tokens/s 830 11-02 827 enginecore 800 warning 800 cache 791 kv 765
decode 734 waiting 688 gpu 683 engine 682 srv 677 01 675 49 671 true 671 prefill 670 request 646 running 638 131072
632 #cached-token 625 #new-seq 625 #new-token 625 n_ctx_slot 625 new 625 release 625 token/s 625 hit 624 000 623 271
623 generation 623 loggers.py 623 prefix 623 reqs 623 #token 620 /generate 620 10.0.0.9 620 gen 620 launch_slot_ 620
log_server_r 620 n_keep 620 n_past 620 n_prompt_tokens 620 stop 620 truncated 620 update_slots 620 exception 600
failed 600 traceback 600 127.0.0.1 591 09 575 get 564 50 561 in 558 12 547 30 539 4523 535 06 532 deepgemm 528 40
509 for 506 20 490 worker_tp0 463 trt-llm 459 08 456 07 454 spark-1 450 to 447 03 422 23 398 nccl 395 using 372 file
366 line 364 is 361 size 347 4750 311 11/21/2026-19 304 run 302 max_seq_len 295 multiproc_executor.py 295 capturing
290 model 285 kernel 271 rank 263 tokens 263 2026-11-21 262 draft_len 259 generation-only 259 with 254 306 253 16
246 utils.py 241 19 239 /metrics 235 /health 231 graphs 230 this 220 the 215 100 214 accepted 212 core.py 211 length
210 acceptance 207 draft 207 drafted 207 mean 207 metrics 207 metrics.py 207 per-position 207 specdecoding 207 22
206 528 203 11 199 memory 190 via 187 962 184 kernel.py 184 727 183 vllm.py 183 be 178 35 177 network 172 worker_tp1
169 5036 167 worker 167 46 166 1048 162 -> 160 and 160 1665 157 1887 157 0/0 155 13 155 channel 155
currank_total_requests 155 global_rank 155 host_step_time 155 ib 155 iter 155 net/ib/0 155 num_ctx_requests 155
num_ctx_tokens 155 num_generation_tokens 155 num_scheduled_requests 155 receive 155 states 155 timestamp 155 747 150
00<00 148 24 140 compile 140 launcher.py 139 nov 137 47 136 loading 135 are 129 32 126 piecewise 126 application 125
full 123 4396 122 tilelang 122 tilelang.jit.kernel 122 set 120 mixed 117 prefill-decode 117 methods 116 of 116 route
116 setting 116 disabled 111 available 110 01<00 107 18 107 as 107 during 107 head 107 54 106 gib 106 1926 105 2409
105 server 105 17 104 return 103 dummy 101 will 101 273 100 failure 100 fp8 98 5564 96 process 96 compilation 95
backend 94 51 92 enabled 92 937 91 gb 91 gpu_model_runner.py 91 model.py 88 init 87 1049 86 5432 86 none 85 took 85
41 84 48 84 from 84 00/0 83 eager 82 3031 81 3481 81 521 80 time 80 1140 79 3234 78 512 78 on 78 flashinfer 77
parallel_state.py 77 2.49 76 native 76 36 75 it 75 version 75 212 73 can 73 0.60 72 04/0 72 28 72 not 72 2169 71
2531 71 cause 71 53 70 /models/tiny-qwen3 69 21 69 triton 69 triton_attn 69 ▄█ 69 44 68 load_format 68 scheduling 68
207 65 fused_add_rms_norm 65 iroppriorityconfig 65 rms_norm 65 25000 64 27 64 4205 64 after 64 args 64 asynchronous
64 starting 64 886 63 consider 63 defaults 63 final 63 inference 63 ir 63 jit 63 jit_monitor.py 63 op 63 platform 63
priority 63 shutdown 63 w1121 63 was 63 133 62 31 62 maximum 62 quantization 62 vllm 62 world_size 62 141 61 52 61
5440 61 55 61 `mhc_pre_big_fuse_tilelang` 61 `out_idx 61 begins 61 completes 61 level 61 msg 61 none` 61 14 60
complete. 60 or 59 that 59 37 58 45 58 0.67 57 261 57 torch.compile 57 10.0.0.1 56 42 56 c10d 56 found 55
tensor_parallel_size 55 25 54 34 54 max 54 0.10 52 0.12 52 0.40 52 0.51 52 0.54 52 623 52 78.1% 52 enabled. 52
initializing 52 kv_cache_dtype 52 0%| 51 870 51 accuracy 51 avail_mem 51 batches 51 bs 51 by 51 enforce_eager 51
gpu_worker.py 51 marlin 51 may 51 mode 51 scaling 51 serve 51 cannot 50 disabled. 50 dp 50 false 50 frame 50 invalid
50 only 50 v0.21.0 50 --gpu-memory-utilization 49 current 49 /opt/vllm/vllm/v1/engine/core.py 48 equivalent 48 open
47 resolved 47 weights 47 api_server.py 46 because 46 kv_cache_utils.py 46 load 46 local_rank 46 remote 46 call 45
distributed_init_method 45 host 45 max_num_batched_tokens 45 tcp 45 vllm.entrypoints.cli.main 45 increase 44 len 44
main 44 no 43 port 43 shutting 43 started 43 user 43 __init__ 42 architecture 42 fd 42 llm 42 tokenizer_mode 42 too
42 torch 42 --load-format 41 --max-model-len 41 inductor 41 --attention-backend 40 --served-model-name 40 active 40
chunked 40 down 40 increasing 40 most 40 scheduler.py 40 up 40 node_rank 39 type 39 -cc.cudagraph_mode 38 -cc.mode
38 act_quant 38 compilation.py 38 cudagraph 38 cudagraphs. 38 custom 38 disabling 38 enforce 38 ep 38 format 38
fusions 38 http 38 ignored. 38 norm_quant 38 optimizations 38 recent 38 settings 38 under 38 vllm_c 38 auto 37
backends.py 37 cpu 37 data_parallel_size 37 disable_custom_all_reduce 37 dtype 37 pipeline_parallel_size 37
served_model_name 37 speculative_config 37 --host 36 --port 36 errors 36 finished 36 model_tag 36 please 36 systemd
36 activated 35 autotune 35 compilations 35 detected 35 kernel_warmup.py 35 last 35 logged 35 monitor 35 see 35
skipping 35 warnings. 35 -n 34 `oserror 34 automatically 34 await 34 client 34 err 34 errno 34 exceeds 34 files`. 34
hostname 34 like 34 limit 34 limit. 34 local 34 many 34 mp 34 non-default 34 processgroupnccl.cpp 34 retrieved. 34
seconds 34 socket 34 socket.cpp 34 system_utils.py 34 ulimit 34 world 34
/opt/vllm/vllm/entrypoints/openai/api_server.py 33 max_model_len 33 startup 33 startup. 33 /models/qwen3-8b 32 ag_rs
32 assigned 32 backend. 32 config 32 dcp_comm_backend 32 decode_context_parallel_size 32 device_config 32
disable_additional_properties 32 download_dir 32 enable_return_routed_experts 32 eplb 32 n/a 32 pcp 32 pp 32
pytorch-native 32 quantization_config 32 qwen3forcausallm 32 reasoning_parser 32 revision 32 sampler. 32 sampling 32
skip_tokenizer_init 32 structured_outputs_config 32 structuredoutputsconfig 32 tokenizer 32 tokenizer_revision 32
top-p/top-k 32 topk_topp_sampler.py 32 torch.bfloat16 32 tp 32 trust_remote_code 32 v1 32
vllm_use_flashinfer_sampler 32 **kwargs 31 *args 31 when 31 work 31 before 30 checkpoint 30 factor 30 fails 30
gpu_memory_utilization 30 kv_cache.py 30 mem 30 mlx5_core 30 nvfp4 30 without 30 attention_backend 29 causes 29
cover 29 extending 29 function 29 https 29 latency 29 master_addr 29 rank0 29 shape/config. 29 spike; 29 timeout 29
tiny-qwen3 29 total 29 value 29 --tensor-parallel-size 28 <unknown 28 avoid 28 data 28 function> 28 needed. 28 per
28 supported 28 attentionbackendenum.triton_attn 27 contention. 27 cuda.py 27 environment 27 external 27
omp_num_threads 27 parallelism 27 raise 27 reasoning_parser_plugin 27 reducing 27 shutdown. 27 threads 27 tune 27
unnecessary 27 completed 26 operations 26 --enforce-eager 25 /models/minimax-m2.7-nvfp4 25 avail 25 multicast 25
supported. 25 symm_mem.py 25 symmetric 25 symmmemcommunicator 25 tensorrt-llm 25 profiling 24
--distributed-executor-backend 23 --nnodes 23 /docs 23 /docs/oauth2-redirect 23 /openapi.json 23
/opt/vllm/vllm/v1/executor/multiproc_executor.py 23 /redoc 23 /usr/lib/python3.12/contextlib.py 23 concurrency 23
create 23 generate 23 group 23 profile 23 routes 23 self.gen 23 some 23 tasks 23 --kv-cache-dtype 22 async 22 e.g.
22 has 22 --master-addr 21 --master-port 21 --node-rank 21 arg_utils.py 21 connection 21 data_parallel_rank 21
estimated 21 inferred 21 operator 21 you 21 /models/dsv4-flash 20 `hc_head_fuse_tilelang` 20 `mhc_fused_tilelang` 20
`mhc_post_tilelang` 20 at 20 backends 20 block 20 boosts 20 broadcast 20 but 20 cache. 20 cache.py 20 checkpoint. 20
crash 20 does 20 doing 20 drop 20 factors 20 footprint 20 hang 20 hanging 20 happens 20 link 20 marlin_utils_fp4.py
20 meanwhile 20 modelopt.py 20 more 20 nvfp4.py 20 performance. 20 processes 20 proper 20 reduces 20 seconds. 20
shared 20 shm_broadcast.py 20 store 20 time-consuming 20 typically 20 weight/kv 20 exit 19 monitor.py 19 range 19
/v1/completions 18 `--chat-template-content-format` 18 chat 18 content 18 hf.py 18 override 18 string 18 super 18
template 18 this. 18 /opt/venv/lib/python3.12/site-packages/uvloop/__init__.py 17
/opt/vllm/vllm/entrypoints/cli/main.py 17 /usr/lib/python3.12/asyncio/runners.py 17 <frozen 17
build_async_engine_client 17 exited 17 initialization 17 leader 17 local_world_size 17 mq_connect_ip 17 nnodes 17
node_rank_within_dp 17 pg 17 run_engine_core 17 run_server 17 run_server_worker 17 runpy> 17 which 17 workerproc 17
.__init__ 16 __aenter__ 16 anext 16 called 16 check 16 guid 16 if 16 qwen3-8b 16 runtimeerror 16 use 16 begin. 15
complete 15 elapsed 15 enable_in_reasoning 15 end. 15 fp4 15 initiated 15 method 15 minimax-m2.7-nvfp4 15 module 15
moe 15 moeprepareandfinalizenodpepmodular 15 ngram 15 nvidia 15 //pytorch.org/docs/stable/distributed.html#shutdown
14 /lib/x86_64-linux-gnu/libc.so.6 14 /opt/vllm/vllm/v1/engine/core_client.py 14 __cxx11 14 allocator<char> 14
basic_string<char 14 build_async_engine_client_from_engine_args 14 char_traits<char> 14 cmd 14 default 14
destroy_process_group 14 due 14 encountered 14 first 14 leak 14 likely 14 logits 14 pool 14 program 14 pynccl.py 14
raised 14 rank1 14 resources. 14 root 14 std 14 tcpstore 14 vllm_config 14
/opt/vllm/vllm/distributed/parallel_state.py 13 cmn 13 func 13 load_model 13 must 13 out 13 shards 13 there 13 used
13 wrapper 13 api 12 could 12 directory 12 distributed_executor_backend 12 down. 12 have 12 master_port 12 match 12
/opt/vllm/vllm/v1/core/kv_cache_utils.py 11 /usr/lib/python3.12/multiprocessing/process.py 11
_check_enough_kv_cache_memory 11 async_llm.py 11 broken 11 engine. 11 get_kv_cache_configs 11 pipe 11 same 11
sendbytes 11 start. 11 valueerror 11 --max-num-seqs 10 --moe-backend 10 __init__.py 10 aarch64 10 affected. 10
and/or 10 apt-daily.service 10 assumes 10 attention 10 attention. 10 being 10 buildkit 10 capture 10 change 10
changes 10 compression 10 computation 10 compute-heavy 10 container 10 containers 10 crashed 10 ctrl+c 10 daemon 10
deactivated 10 deepseek 10 deepseek_v4 10 deepseek_v4_attention.py 10 deepseekv4forcausallm 10 degrade 10 degraded.
10 dequantization. 10 distributed 10 docker 10 emulation 10 event 10 experimental 10 factor. 10 firmware 10
flash-attn 10 flashinfer_cutedsl 10 flashinfer_cutedsl_batched 10 flashinfer_cutlass 10 flashinfer_trtllm 10
fp8-s0e5m3 10 fp8-s1e4m3 10 fp8_e4m3. 10 future. 10 gb. 10 hangs 10 issues. 10 k/v_scale 10 k_scale. 10 kernel. 10
leveraging 10 linux 10 loop 10 make 10 matters 10 max_num_seqs 10 max_prefill_tokens 10 minimaxm2forcausallm 10
modelopt 10 mpi 10 multi-thread 10 mxfp4.py 10 negative 10 note 10 num_speculative_tokens 10 performance 10
potential 10 press 10 prob_scale 10 prompt_lookup_max 10 prompt_lookup_min 10 properly 10 provide 10 q/prob 10
q_scale 10 quant_algo 10 quit 10 runs. 10 scales 10 scales. 10 session 10 simulated 10 sparkwright 10 special 10
speculative 10 speedup 10 successfully. 10 support 10 sure 10 twin 10 uncalibrated 10 unintended 10 used. 10 uvicorn
10 verify 10 vllm_cutlass 10 w1_weight_scale_2 10 w3_weight_scale_2. 10 weight 10 weight-only 10 workloads. 10 your
10 ~server 10
"""

COMMON: dict[str, int] = {word: int(count) for word, count in zip(*[iter(_COUNTED.split())] * 2, strict=True)}

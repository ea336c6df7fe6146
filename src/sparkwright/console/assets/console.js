"use strict";
// The page is whole without this script; it keeps the page current.
(() => {
  const main = document.querySelector("main[data-live]");
  const lost = document.getElementById("lost");

  // Changes an element into another one of the same kind, in place: focus, selection and scrolling stay.
  function morph(old, fresh) {
    for (const { name } of [...old.attributes]) {
      if (!fresh.hasAttribute(name) && !(name === "open" && old.matches("details"))) old.removeAttribute(name);
    }
    for (const { name, value } of fresh.attributes) {
      if (old.getAttribute(name) !== value) old.setAttribute(name, value);
    }
    if (fresh.hasAttribute("data-keep") && !fresh.childElementCount) return;
    const had = [...old.childNodes], has = [...fresh.childNodes];
    has.forEach((one, at) => {
      const before = had[at];
      if (!before) old.append(one);
      else if (before.nodeType !== one.nodeType || before.nodeName !== one.nodeName || before.id !== one.id) before.replaceWith(one);
      else if (one.nodeType === Node.ELEMENT_NODE) morph(before, one);
      else if (before.nodeValue !== one.nodeValue) before.nodeValue = one.nodeValue;
    });
    had.slice(has.length).forEach((one) => one.remove());
  }

  function show(html) {
    const region = document.getElementById("live");
    const made = new DOMParser().parseFromString(`<div id="live">${html}</div>`, "text/html");
    morph(region, made.body.firstElementChild);
  }

  // A gateway that answers 503 ends an EventSource for good: a new one is opened once the page can be had again.
  async function again(address) {
    try {
      const answer = await fetch(location.href, { redirect: "manual", cache: "no-store", signal: AbortSignal.timeout(10000) });
      if (answer.type === "opaqueredirect") location.reload();
      else if (answer.ok) return follow(address);
    } catch { /* still away */ }
    setTimeout(again, 1000, address);
  }

  // A stream that stops without an end, or never begins, is asked for again: the server says something at least every
  // 15 s.
  const silent = 40000;
  let away = 0, heard = 0, stream = null;
  function follow(address) {
    const events = new EventSource(address);
    const hears = () => { away = 0; heard = Date.now(); lost.hidden = true; };
    stream = { events, address };
    heard = Date.now();
    events.onopen = hears;
    events.addEventListener("still", hears);
    events.onerror = () => {
      away = away || Date.now();
      if (events.readyState === EventSource.CLOSED) again(address);
    };
    events.onmessage = (event) => { hears(); show(JSON.parse(event.data)); document.body.dataset.updated = Date.now(); };
    events.addEventListener("lines", (event) => { hears(); append(JSON.parse(event.data)); });
    events.addEventListener("gone", () => {
      events.close();
      document.body.replaceChildren();
      location.replace("/console/login?gone");
    });
  }

  setInterval(() => {
    if (stream && stream.events.readyState !== EventSource.CLOSED && Date.now() - heard > silent) {
      away = away || heard;
      stream.events.close();
      again(stream.address);
    }
    if (!away || Date.now() - away < 2000) return;
    lost.hidden = false;
    lost.textContent = `The connection to the head node is lost for ${Math.round((Date.now() - away) / 1000)} s: what is shown is old.`;
  }, 1000);

  // Parts that ask for themselves again, while somebody looks.
  document.querySelectorAll("[data-poll]").forEach((box) => setInterval(async () => {
    if (document.hidden) return;
    try {
      const answer = await fetch(box.dataset.poll, { redirect: "manual", cache: "no-store" });
      if (!answer.ok) return;
      const made = new DOMParser().parseFromString(await answer.text(), "text/html").body;
      const fresh = box.cloneNode(false);
      fresh.append(...made.childNodes);
      morph(box, fresh);
    } catch { /* the next one is as good */ }
  }, 1000 * box.dataset.every));

  // The filter of a log, without asking again.
  const sieve = document.getElementById("log-filter");
  const levels = { doubt: ["doubt", "bad", "cause"], bad: ["bad", "cause"], cause: ["cause"] };

  function sift(line) {
    const { words, rank, level, access } = sieve.elements, kinds = [...line.classList];
    const shown = !kinds.includes("access") || access.checked;
    const fits = !level.value || kinds.some((kind) => levels[level.value].includes(kind));
    const same = !rank.value || line.dataset.rank === rank.value;
    line.hidden = !kinds.includes("note") &&
      !(shown && fits && same && line.textContent.toLowerCase().includes(words.value.toLowerCase()));
  }

  if (sieve) {
    sieve.addEventListener("input", () => document.querySelectorAll("#log .line").forEach(sift));
    sieve.addEventListener("submit", (event) => event.preventDefault());
    const next = document.getElementById("next-cause");
    next.hidden = false;
    next.addEventListener("click", () => {
      const log = document.getElementById("log"), causes = [...log.querySelectorAll(".cause:not([hidden])")];
      const after = causes.find((one) => one.offsetTop - log.offsetTop > log.scrollTop + 60) || causes[0];
      if (after) log.scrollTop = after.offsetTop - log.offsetTop - 40;
      next.textContent = causes.length ? `Next cause (${causes.length})` : "No cause is shown";
    });
  }

  // Lines of a log: at the end, as long as the reader is there.
  function append(html) {
    const log = document.getElementById("log");
    log.querySelectorAll(".note:first-child:last-child").forEach((one) => one.remove());
    const atEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 40;
    const made = new DOMParser().parseFromString(html, "text/html");
    made.body.childNodes.forEach(sift);
    log.append(...made.body.childNodes);
    while (log.childElementCount > 2000) log.firstElementChild.remove();
    if (atEnd) log.scrollTop = log.scrollHeight;
  }

  // The chat: one answer at a time, as it comes, and only as text.
  const chat = document.getElementById("chat");
  if (chat) {
    const turns = document.getElementById("turns"), halt = document.getElementById("halt");
    const field = chat.elements.prompt, send = chat.querySelector("[type=submit]"), said = [];
    let busy = null;
    chat.querySelector(".hint").hidden = false;

    function turn(who, kind) {
      const box = document.createElement("div"), name = document.createElement("b"), body = document.createElement("p");
      box.className = `turn ${kind}`;
      name.textContent = who;
      box.append(name, body);
      turns.append(box);
      return body;
    }

    function add(body, text) {
      body.append(text);
      if (turns.scrollHeight - turns.scrollTop - turns.clientHeight < 80) turns.scrollTop = turns.scrollHeight;
    }

    async function lines(answer, take) {
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      let rest = "";
      for (let part; !(part = await reader.read()).done;) {
        const found = (rest + part.value).split("\n");
        rest = found.pop();
        found.forEach((line) => take(...JSON.parse(line)));
      }
    }

    // Markdown as elements, never as markup: what an answer holds stays text.
    function inline(words, into) {
      const marks = /(`+)(.+?)\1|\*\*(.+?)\*\*|\*([^*\s][^*]*)\*/g;
      let at = 0;
      for (const found of words.matchAll(marks)) {
        into.append(words.slice(at, found.index));
        const made = document.createElement(found[1] ? "code" : found[3] ? "strong" : "em");
        made.textContent = found[2] || found[3] || found[4];
        into.append(made);
        at = found.index + found[0].length;
      }
      into.append(words.slice(at));
    }

    function block(kind, words) { const made = document.createElement(kind); inline(words, made); return made; }

    function render(text) {
      const all = document.createElement("div"), rows = text.split("\n");
      let list = null, prose = [];
      const flush = () => { if (prose.length) all.append(block("p", prose.join("\n"))); prose = []; };
      all.className = "markdown";
      for (let at = 0; at < rows.length; at++) {
        const row = rows[at], item = row.match(/^\s*(?:[-*]|(\d+)[.)])\s+(.*)/), title = row.match(/^(#{1,6})\s+(.*)/);
        if (!item) list = null;
        if (/^\s*```/.test(row)) {
          flush();
          const code = [];
          while (++at < rows.length && !/^\s*```/.test(rows[at])) code.push(rows[at]);
          const box = document.createElement("pre");
          box.tabIndex = 0;
          box.textContent = code.join("\n");
          all.append(box);
        } else if (item) {
          flush();
          const kind = item[1] ? "OL" : "UL";
          if (list?.tagName !== kind) all.append(list = document.createElement(kind));
          list.append(block("li", item[2]));
        } else if (title) { flush(); all.append(block("h4", title[2])); }
        else if (row.trim()) prose.push(row);
        else flush();
      }
      flush();
      return all;
    }

    async function ask() {
      const name = location.pathname.split("/")[3] || chat.action.split("/").pop();
      const body = turn(name, "answer");
      let thought = null, text = "", ended = false, heard = Date.now(), came = heard, looked = heard, cut = false;
      const note = (words, kind) => { const box = document.createElement("span"); box.className = kind; box.textContent = words; body.parentNode.append(box); };
      const quiet = document.createElement("span");
      quiet.className = "soft";
      quiet.setAttribute("aria-live", "off");
      body.parentNode.append(quiet);
      busy = new AbortController();
      // The console says something every 10 s: without it the connection is lost, with it the engine is slow.
      const watch = setInterval(() => {
        const now = Date.now(), waits = Math.round((now - came) / 1000);
        if (now - looked > 5000) heard = now;  // this page slept itself
        looked = now;
        quiet.textContent = waits < 10 ? "" : `nothing has come for ${waits} s; still waiting`;
        if (now - heard > silent && busy) { cut = true; busy.abort(); }
      }, 1000);
      try {
        const form = new URLSearchParams({ token: chat.elements.token.value, messages: JSON.stringify(said) });
        const answer = await fetch(`${chat.action}/say`, { method: "POST", body: form, signal: busy.signal, redirect: "manual" });
        if (answer.type === "opaqueredirect") { location.reload(); return; }
        if (!answer.ok) throw new Error(await answer.text());
        await lines(answer, (kind, words) => {
          heard = Date.now();
          if (kind === "still") return;
          came = heard;
          quiet.textContent = "";
          if (kind === "text") { text += words; add(body, words); }
          else if (kind === "thought") {
            if (!thought) { thought = document.createElement("p"); thought.className = "thought"; body.before(thought); }
            add(thought, words);
          } else { ended = true; note(words, kind); }
        });
        if (!ended) note("the connection was lost before the end", "error");
      } catch (error) {
        const lost = `the connection was lost: nothing was heard for ${silent / 1000} s`;
        note(cut ? lost : error.name === "AbortError" ? "stopped" : String(error.message), "error");
      }
      clearInterval(watch);
      quiet.remove();
      if (text) body.replaceWith(render(text));
      if (text) said.push({ role: "assistant", content: text }); else said.pop();
      turns.scrollTop = turns.scrollHeight;
      busy = null; send.disabled = false; halt.hidden = true;
    }

    chat.addEventListener("submit", (event) => {
      event.preventDefault();
      const words = field.value.trim();
      if (!words || busy) return;
      said.push({ role: "user", content: words });
      add(turn("you", "mine"), words);
      field.value = ""; send.disabled = true; halt.hidden = false;
      ask();
    });
    halt.addEventListener("click", () => { if (busy) busy.abort(); field.focus(); });
    field.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && !event.shiftKey && !event.isComposing) { event.preventDefault(); chat.requestSubmit(); }
    });
    field.focus();
  }

  // Copies what stands before the button.
  document.querySelectorAll(".copy").forEach((button) => {
    button.hidden = false;
    button.addEventListener("click", async () => {
      const text = button.parentNode.querySelector("pre, code").textContent;
      try { await navigator.clipboard.writeText(text); button.textContent = "Copied"; }
      catch { getSelection().selectAllChildren(button.parentNode.querySelector("pre, code")); button.textContent = "Selected"; }
      setTimeout(() => { button.textContent = "Copy"; }, 1500);
    });
  });

  // On a phone the pages are one row that scrolls: the present one is in sight.
  const here = document.querySelector("body > header nav [aria-current]");
  if (here) here.parentNode.scrollLeft = here.offsetLeft + here.offsetWidth / 2 - here.parentNode.offsetWidth / 2;

  const log = document.getElementById("log");
  if (log) log.scrollTop = log.scrollHeight;
  if (main) follow(main.dataset.live);
})();

-- Of `eval`: JSON of domain/evaluation.py; '' of a benchmark.
ALTER TABLE runs ADD COLUMN evaluation TEXT NOT NULL DEFAULT '';

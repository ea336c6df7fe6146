"""A matrix of cases as one test."""

import functools
import inspect
from collections.abc import Callable, Iterable

from _pytest.mark import ParameterSet


def for_each(names: str, cases: Iterable[object], ids: object = None) -> Callable[[Callable], Callable]:
    """`pytest.mark.parametrize` without a test for each case, which takes more time than most cases do.

    All cases run; the first failure is raised and names its case and the others that failed. For tests without
    fixtures that change from case to case. `ids` is accepted for parametrize's sake.
    """
    keys, rows = [name.strip() for name in names.split(",")], list(cases)

    def wrap(test: Callable) -> Callable:
        @functools.wraps(test)
        def run(**given: object) -> None:
            failed: list[tuple[str, Exception]] = []
            for number, case in enumerate(rows):
                values = case.values if isinstance(case, ParameterSet) else case if len(keys) > 1 else (case,)
                try:
                    test(**given, **dict(zip(keys, values, strict=True)))
                except Exception as error:
                    failed.append((f"{number}: {values!r:.300}", error))
            if failed:
                failed[0][1].add_note("failed for these cases:\n  " + "\n  ".join(label for label, _ in failed[:20]))
                raise failed[0][1]

        parameters = inspect.signature(test).parameters
        left = [one for name, one in parameters.items() if name not in keys]
        run.__signature__ = inspect.Signature(left)  # type: ignore[attr-defined]
        return run

    return wrap

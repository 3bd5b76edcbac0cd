"""The pages of experiments under the names that this package uses."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ptncn.experiments import EXPERIMENTS
from ptncn.experiments.page import ErrorKey, Page
from ptncn.records import Record


@dataclass(frozen=True)
class Subject:
    """An experiment, for readers."""

    page: Page

    @property
    def title(self) -> str:
        return self.page.title

    @property
    def asked(self) -> str:
        return self.page.question

    @property
    def metrics(self) -> tuple[str, ...]:
        return self.page.metrics

    @property
    def names(self) -> Mapping[str, str]:
        return self.page.metric_labels

    @property
    def choices(self) -> tuple[int, ...]:
        return self.page.choices

    @property
    def silent(self) -> tuple[str, ...]:
        return self.page.unstated

    @property
    def errors(self) -> Callable[[str, str], ErrorKey]:
        return self.page.errors

    @property
    def paper_scale(self) -> Callable[[Record], dict[str, Any]]:
        return self.page.paper_config

    @property
    def references(self) -> tuple[str, ...]:
        return self.page.references

    @property
    def bounds(self) -> bool:
        return self.page.bounds


class _Subjects(Mapping[str, Subject]):
    def __getitem__(self, name: str) -> Subject:
        return Subject(EXPERIMENTS[name].page)

    def __iter__(self) -> Iterator[str]:
        return iter(EXPERIMENTS)

    def __len__(self) -> int:
        return len(EXPERIMENTS)


SUBJECTS = _Subjects()

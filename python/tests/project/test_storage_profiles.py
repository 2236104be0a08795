# SPDX-License-Identifier: Apache-2.0
"""The profiles in conf/storage are what Spark reads, and set what there is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from spark_dstl.options import PREFIX, all_options

PROFILES = sorted((Path(__file__).parents[3] / "conf" / "storage").glob("*.conf"))


def settings(profile: Path) -> dict[str, str]:
    lines = [line for line in profile.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]
    found = dict(line.split(maxsplit=1) for line in lines)
    assert len(found) == len(lines), "a setting twice"
    return found


def test_there_is_one_for_each_storage() -> None:
    assert {profile.stem for profile in PROFILES} == {"abfs", "gcs", "hdfs", "minio", "s3", "s3-express"}


@pytest.mark.parametrize("profile", PROFILES, ids=lambda profile: profile.stem)
def test_a_profile_sets_options_that_there_are_to_values_that_they_take(profile: Path) -> None:
    options = {option.key: option for option in all_options()}
    for key, value in settings(profile).items():
        assert key.startswith(("spark.hadoop.fs.", PREFIX)), key
        if key.startswith(PREFIX):
            options[key.removeprefix(PREFIX)].convert(value)


@pytest.mark.parametrize("profile", PROFILES, ids=lambda profile: profile.stem)
def test_a_profile_says_what_must_not_be_set_and_does_not_set_it(profile: Path) -> None:
    _, _, forbidden = profile.read_text(encoding="utf-8").partition("# Must not be set")
    assert forbidden
    values = settings(profile)
    for key, value in re.findall(r"^# +([\w.]+)=(\w+)", forbidden, re.MULTILINE):
        full = key if key.startswith("spark.") else f"spark.hadoop.{key}"
        assert values.get(full) != value

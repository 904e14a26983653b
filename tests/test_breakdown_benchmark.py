"""What the breakdown of a batch makes of Spark's event log."""

from __future__ import annotations

import json

from benchmarks.breakdown import Job, jobs_of


def stage(number, began, ended):
    info = {"Stage ID": number, "Submission Time": began, "Completion Time": ended}
    return {"Event": "SparkListenerStageCompleted", "Stage Info": info}


def test_jobs_of_two_stages_are_read_and_the_parts_of_a_batch_add_up_to_it(tmp_path):
    log = tmp_path / "events_1"
    events = [
        {"Event": "SparkListenerJobStart", "Job ID": 0, "Submission Time": 5, "Stage IDs": [0]},
        stage(0, 6, 9),
        {"Event": "SparkListenerJobEnd", "Job ID": 0, "Completion Time": 10},
        {"Event": "SparkListenerJobStart", "Job ID": 1, "Submission Time": 100, "Stage IDs": [3, 1, 2]},
        {"Event": "SparkListenerTaskEnd"},
        stage(2, 101, 141),  # stage 1 was skipped: its results were there
        stage(3, 142, 160),
        {"Event": "SparkListenerJobEnd", "Job ID": 1, "Completion Time": 162},
    ]
    log.write_text("\n".join(map(json.dumps, events)))
    jobs = jobs_of(log)
    assert jobs == [Job(100, ((101, 141), (142, 160)), 162)]
    parts = jobs[0].parts({"triggerExecution": 120, "addBatch": 90})
    assert list(parts.values()) == [120, 40, 18, 4, 28, 30]
    assert parts.pop("a batch") == sum(parts.values())

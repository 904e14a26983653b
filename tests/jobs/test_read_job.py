"""Job files: what can be said, what it means, and mistakes told with their line."""

from __future__ import annotations

import inspect
import re
import textwrap
from importlib.resources import files
from pathlib import Path

import pyarrow as pa
import pytest

from evenkeel import operators
from evenkeel.control import Controller
from evenkeel.errors import EvenkeelError, InvalidArgumentError
from evenkeel.jobs import check_columns, read_job
from evenkeel.jobs.job import Trigger
from evenkeel.jobs.names import OPERATORS, STRATEGIES
from evenkeel.jobs.values import types_of
from evenkeel.operators import Aggregate, Count, Detector, Sessions, Sum, TopK, Tumbling
from evenkeel.planning import Keel, StayPut
from evenkeel.routing.routers import PartialKeyGrouping
from evenkeel.spark.jobs import check_job

START = """\
checkpoint = "checkpoint"
sink = "console"
[source]
format = "rate"
"""


@pytest.fixture
def read(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def read_text(text: str, start: str = START):
        (tmp_path / "job.toml").write_text(start + textwrap.dedent(text))
        return read_job("job.toml")

    return read_text


def stage(read, *lines: str):
    return read("\n".join(["[[stage]]", 'key = "word"', *lines])).stage[0]


def test_the_example_is_in_order_and_says_what_it_seems_to():
    job = read_job(str(files("evenkeel.jobs") / "example.toml"))
    check_job(job)
    assert job.trigger == Trigger(processingTime="1 second")
    assert job.stage[0].operator == Tumbling(Count(), "1 minute")
    assert isinstance(job.stage[0].chosen().planner, Keel)


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ('operator = "count"', Count()),
        ('operator = { name = "sum", column = "price" }', Sum("price")),
        (
            'operator = { name = "aggregate", orders = "count", revenue = { name = "sum", column = "price" } }',
            Aggregate(orders=Count(), revenue=Sum("price")),
        ),
        ('event_time = "at"\noperator = { name = "sessions", gap = "1 hour", operator = "count" }',
         Sessions("1 hour", Count())),
        ('operator = { name = "top_k", k = 3, by = "n", item = ["word", "language"] }',
         TopK(3, "n", ("word", "language"))),
    ],
    ids=["by name", "with a parameter", "several at once", "one within another", "a list"],
)  # fmt: skip
def test_an_operator_is_what_it_is_in_python(read, said, meant):
    assert stage(read, said).operator == meant


def test_rules_are_said_in_sql(read):
    made = stage(
        read,
        "[stage.operator]",
        'name = "detector"',
        "[stage.operator.rules]",
        "high = 'SELECT x FROM events QUALIFY x > 3'",
    )
    assert isinstance(made.operator, Detector)


def test_every_operator_that_plain_values_can_say_has_a_name():
    classes = {one for one in vars(operators).values() if inspect.isclass(one) and issubclass(one, operators.Operator)}
    missing = classes - set(OPERATORS.values())
    assert missing == {operators.Operator, operators.Mergeable, operators.PerKey}


@pytest.mark.parametrize("make", [*OPERATORS.values(), *STRATEGIES.values()], ids=lambda make: make.__name__)
def test_the_type_of_every_parameter_is_known(make):
    assert set(inspect.signature(make).parameters) <= set(types_of(make))


@pytest.mark.parametrize("name", sorted(STRATEGIES))
def test_every_strategy_can_be_named(read, name):
    made = stage(read, 'operator = "count"', f'strategy = "{name}"', "channels = 5")
    assert isinstance(made.chosen(), Controller) == (getattr(made.strategy, "channels", None) is None)


def test_strategies_take_options_and_controllers_theirs(read):
    made = stage(
        read,
        'operator = "count"',
        'strategy = { name = "keel", tolerance = 0.5 }',
        "replicas = { default = 1 }",
        "elasticity = { target = 1000, max_channels = 12 }",
        "[stage.control]",
        "windows.batches = 7",
        "[stage.control.drift]",
        "share = 0.5",
    )
    options = made.chosen().options
    assert made.strategy == Keel(tolerance=0.5)
    assert made.replicas.default == 1
    assert (options.windows.batches, options.drift.share) == (7, 0.5)
    assert (options.elasticity.upper, options.elasticity.max_channels) == (1200, 12)
    routed = stage(read, 'operator = "count"', 'strategy = { name = "pkg", choices = 3 }', "channels = 6").chosen()
    assert isinstance(routed, PartialKeyGrouping)
    assert routed.channels == 6
    assert isinstance(stage(read, 'operator = "count"', 'strategy = "key_grouping"').strategy, StayPut)


def test_classes_and_functions_of_ones_own_are_found_beside_the_file(read, tmp_path):
    (tmp_path / "own_parts.py").write_text(
        "from evenkeel.operators import Count\n"
        "class Tally(Count):\n    name = 'tally'\n"
        "ready = Tally('n')\n"
        "def write(results, batch): return 42\n"
    )
    made = stage(read, 'operator = { name = "own_parts:Tally", called = "n" }').operator
    assert (made.name, made.called) == ("tally", "n")
    assert stage(read, 'operator = "own_parts:ready"').operator.called == "n"
    job = read("[[stage]]\nkey = 'k'\noperator = 'count'", START.replace('"console"', '"own_parts:write"'))
    assert job.sink(None, 0) == 42


MISTAKES = [
    ("operator = 'count'\nstrategy = 'kel'", "job.toml:8: unknown strategy 'kel'. Did you mean 'keel'?"),
    ("operator = 'cuont'", "job.toml:7: unknown operator 'cuont'. Did you mean 'count'?"),
    (
        "operator = { name = 'sum', colum = 'x' }",
        "job.toml:7: operator 'sum' needs 'column'.\njob.toml:7: unknown key 'colum' of operator 'sum'. Did you mean",
    ),
    (
        "operator = 'count'\n[stage.strategy]\nname = 'keel'\ntolerence = 1",
        "job.toml:10: unknown key 'tolerence' of strategy 'keel'. Did you mean 'tolerance'?",
    ),
    ("operator = 'count'\nchannels = 'four'", "job.toml:8: channels must be a whole number; got 'four'."),
    ("operator = 'count'\nchannels = 0", "job.toml:8: channels must be at least 1; got 0."),
    ("operator = 'count'\ncombine = 1", "job.toml:8: combine must be true or false; got 1."),
    (
        "operator = 'count'\nnull_keys = 'skip'",
        "job.toml:8: null_keys must be 'keep' or 'drop' or 'error'; got 'skip'.",
    ),
    ("operator = 'count'\ncontrol.imbalance.start = 0.5", "job.toml:8: start must be at least 1.05; got 0.5."),
    (
        "operator = 'count'\nstrategy = 'pkg'\ncontrol.log_limit = 5",
        "job.toml:9: control is for strategies that plan tables, such as 'keel'.",
    ),
    (
        "operator = 'count'\nelasticity.target = 100\nelasticity.shrink_windows = 20",
        "job.toml:5: The gates look back over 20 windows, but only 5 are kept; keep more.",
    ),
    ("operator = 'no_such_module:Thing'", "job.toml:7: importing 'no_such_module' failed: No module named"),
    ("operator = 'json:Decoder'", "job.toml:7: unknown name 'Decoder' in 'json'. Did you mean '"),
    ("operator = 'json:loads'", "job.toml:7: operator 'json:loads' needs 's'."),
    (
        "operator = { name = 'detector', rules = ['SELECT x FROM events QUALIFY x > 3'], functions = [1] }",
        "job.toml:7: functions[0] cannot be said in a job file, only in Python.",
    ),
    ("operator = { name = 'tumbling', size = '1 fortnight', operator = 'count' }", "job.toml:7: size: '1 fortnight'"),
    (
        "operator = { name = 'tumbling', size = '1 day', operator = { name = 'reordered', operator = 'count' } }",
        "job.toml:7: Windows and sessions keep partial states and merge them, so they need a mergeable operator",
    ),
]


@pytest.mark.parametrize(("lines", "told"), MISTAKES, ids=[told[:60] for _, told in MISTAKES])
def test_a_mistake_is_told_with_its_line(read, lines, told):
    with pytest.raises(InvalidArgumentError) as caught:
        stage(read, *lines.split("\n"))
    assert str(caught.value).startswith(told)


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        (
            "operator = { name = 'count_tumbling', size = 3, operator = 'count' }\nstrategy = 'pkg'",
            "job.toml:8: 'pkg' splits keys over channels",
        ),
        ("operator = 'count'\nprobe = 'x'", "job.toml:8: probe is for strategies"),
        (
            "operator = { name = 'tumbling', size = '1 day', operator = 'count' }",
            "job.toml:7: Operator 'tumbling' need",
        ),
        ("operator = 'count'\nstrategy = 'potc'", "job.toml:8: 'potc' remembers a choice for each key"),
        ("operator = 'count'\naggregate_every = 3", "job.toml:8: aggregate_every is for strategies that split keys."),
    ],
)
def test_what_does_not_go_together_is_told_without_spark(read, lines, told):
    with pytest.raises(InvalidArgumentError) as caught:
        check_job(read(f'[[stage]]\nkey = "word"\n{lines}'))
    assert str(caught.value).startswith(told)


def test_all_mistakes_are_told_at_once_in_the_order_of_lines(read):
    with pytest.raises(InvalidArgumentError) as caught:
        read("opions = 1\n[[stage]]\nkey = 5\n[[stage]]\nkey = 'a'\noperator = 'count'\nslots = 1.5\n[sprak]\n")
    assert [line.split(": ")[0] for line in str(caught.value).splitlines()] == [
        f"job.toml:{line}" for line in (5, 6, 7, 11, 12)
    ]
    assert (caught.value.file, caught.value.line) == ("job.toml", 5)


@pytest.mark.parametrize(
    ("start", "told"),
    [
        ("checkpoint = [1,\n", "job.toml:2: this is not TOML: "),
        ("a = 1\na = 2\n[b]", "job.toml:2: this is not TOML: Cannot overwrite a value."),
        (START + "[stage]\nkey = 'x'", "job.toml:5: stage must be a list; got {'key': 'x'}."),
        (START + "stream = false\n[[stage]]\nkey = 'k'\noperator = 'count'\n", None),
        ("trigger = '1 day'\n" + START + "stream = false\n[[stage]]\nkey = 'k'\noperator = 'count'\n",
         "job.toml:1: trigger is for streams"),
        (START.replace('"console"', '"memory"'), "job.toml:1: a job needs 'stage'.\njob.toml:2: the sink 'memory'"),
        ("stage = []\n" + START, "job.toml:1: stage must have at least one table."),
    ],
    ids=["unfinished", "twice", "single brackets", "static", "a trigger of static rows", "memory", "no stage"],
)  # fmt: skip
def test_the_file_as_a_whole(read, start, told):
    if told is None:
        assert read("", start).source.stream is False
        return
    with pytest.raises(InvalidArgumentError) as caught:
        read("", start)
    assert str(caught.value).startswith(told)


def test_a_file_that_is_not_there_or_no_text_is_told(tmp_path):
    with pytest.raises(EvenkeelError, match=r"No such file or directory. 'evenkeel init' writes an example"):
        read_job(tmp_path / "job.toml")
    (tmp_path / "job.toml").write_bytes(b"a = '\xff'")
    with pytest.raises(EvenkeelError, match="is not a text in UTF-8"):
        read_job(tmp_path / "job.toml")


def test_what_the_example_leaves_out_by_comments_is_in_order_too(tmp_path):
    example = (files("evenkeel.jobs") / "example.toml").read_text()
    text, found = re.subn(r"^# (\[.*|\w+ = .*)$", r"\1", example, flags=re.MULTILINE)
    assert found == 8
    (tmp_path / "job.toml").write_text(text)
    job = read_job(tmp_path / "job.toml")
    check_job(job)
    assert [made.operator.name for made in job.stage] == ["tumbling", "top_k"]
    rows = pa.schema([("word", pa.string()), ("at", pa.timestamp("us", "UTC"))])
    check_columns(job, rows)


BLOCKS = [
    pytest.param(block, id=f"{page.name} block {number}")
    for page in sorted((Path(__file__).parents[2] / "docs").glob("*.md"))
    for number, block in enumerate(re.findall(r"^```toml\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE), 1)
]


@pytest.mark.parametrize("block", BLOCKS)
def test_jobs_in_the_docs_are_in_order(read, block):
    start = "" if "checkpoint =" in block else 'checkpoint = "checkpoint"\nsink = "console"\n'
    source = "" if "[source]" in block else '[source]\nformat = "rate"\n'
    stage = "" if "[[stage]]" in block else '[[stage]]\nkey = "word"\n'
    operator = "" if "operator" in block else 'operator = "count"\n'
    rest = f"{source}{stage}{block}" if "[stage." in block else f"{source}{block}\n{stage}{operator}"
    check_job(read(rest, start))

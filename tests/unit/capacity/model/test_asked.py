"""Advice is for the runs that there are, and its commands can be copied and run."""

from workbench.capacity.model import Asked, remedies


def test_a_command_names_the_file_that_is_known_as_a_shell_reads_it():
    assert Asked(study="my studies/q5.yaml").plan("Now").command == "workbench plan 'my studies/q5.yaml'"
    assert str(Asked().plan("Now")) == "Now run: workbench plan STUDY.yaml"
    read = Asked("observed", log="app 1", options={"interval": 2.0})
    assert read.observe(1e6, 0.05) == "workbench observe 'app 1' --interval 2 --target 1000000 --risk 0.05"
    assert read.observe(another=True) == "workbench observe LOG --interval 2"


def test_the_options_of_a_plan_are_repeated():
    given = {"master": "spark://one:7077", "checkpoint": "/mnt/all", "journal": "mine.jsonl"}
    advised = remedies(Asked(study="slow.yaml", options=given))
    there = "workbench plan slow.yaml --master spark://one:7077 --checkpoint /mnt/all"
    assert advised.safer.command == f"{there} --journal mine.jsonl"
    assert advised.larger.command == f"{there} --journal mine.jsonl"
    assert advised.quieter.command == f"{there} --journal NEW.jsonl"


def test_what_a_report_measures_is_measured_again_by_the_report():
    for kind in ("spark", "fluid", "recorded"):
        for each in remedies(Asked(kind, "slow.yaml", scheduled=True)):
            assert each.words.endswith("run the report again.")
            assert not each.command


def test_less_risk_is_advised_than_was_asked_for():
    for asked, advised in ((None, "0.05"), (0.3, "0.05"), (0.05, "0.025"), (0.02, "0.01")):
        assert remedies(Asked(risk=asked)).safer.words.startswith(f'Set "risk: {advised}" in the study')
        assert remedies(Asked("observed", risk=asked), 2e5).safer.command.endswith(f"--target 200000 --risk {advised}")


def test_a_study_of_a_log_is_planned_again_and_not_observed():
    advised = remedies(Asked("observed", "a.yaml", "app"), 2e5)
    assert all(each.command == "workbench plan a.yaml" for each in (advised.safer, advised.quieter))

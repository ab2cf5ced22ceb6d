"""What users are shown of logs is what it was."""

from tests.golden import answers


def test_every_answer_is_the_kept_one():
    now, kept = answers.digests(answers.all_answers()), answers.kept()
    differ = [key for key in {**kept, **now} if kept.get(key) != now.get(key)]
    assert not differ, "\n".join([
        f"{len(differ)} of {len(kept)} answers differ from tests/golden/answers.json:",
        *differ[:40],
        "Compare by python -m tests.golden.answers --bodies FOLDER, before and after the change;",
        "if users shall see it, keep it: python -m tests.golden.answers.",
    ])  # fmt: skip

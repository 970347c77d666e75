"""The commands of actions."""

from __future__ import annotations

import pytest

from crossdock.console.action_definitions import ACTIONS, Action
from crossdock.console.started_commands import PLAN, PlanFile


@pytest.mark.parametrize("action", ACTIONS.values(), ids=ACTIONS)
@pytest.mark.parametrize("text", ["--config=other.yaml", "-oother", "PLAN"])
def test_no_text_of_a_person_becomes_an_option(action: Action, text: str) -> None:
    """Each is the value of an option, or stands after all options; and none is the file of a plan."""
    given = dict.fromkeys((*action.fields, "plan_file", "id"), text)
    choices = [{each.name: choice} for each in action.inputs for choice, _ in each.choices]
    for chosen in choices or [{}]:
        arguments = action.command({**given, **chosen})
        options = arguments[: arguments.index("--")] if "--" in arguments else arguments
        assert [each for each in options if each == text and not isinstance(each, PlanFile)] == []
        assert [each for each in arguments if isinstance(each, PlanFile)] == [PLAN] * ("-o" in arguments)

"""Tables for people: names of columns in two lines, and nothing from outside that moves a cursor."""

from bitscale.views.tables import Table


def test_the_name_of_a_column_may_have_two_lines():
    lines = Table("", ["", "64 bits\ntrained at 64"], [["map", "91.88"]], []).text().splitlines()
    assert [line.strip("┃ ") for line in lines if "64" in line] == ["64 bits", "trained at 64"]


def test_control_characters_are_escaped():
    text = Table("head\x1b[2J", ["name", "a\rb"], [["one\ntwo", "\x07"]], ["note\x1b"]).text()
    for said in ("head\\x1b[2J", "a\\rb", "one\\ntwo", "\\x07", "note\\x1b"):
        assert said in text
    assert "\x1b" not in text

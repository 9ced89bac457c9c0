"""What state and joins go by, from analysed plans as Spark writes them."""

from workbench.workload.analysed import grouped_by, joined_by, watermarks_of

PLAN = """
Aggregate [window#40-T5000ms, upper(kind#42)], [window#40-T5000ms AS window#44-T5000ms, count(1) AS n#43L]
+- Deduplicate [id#50L]
   +- Join Inner, (((a#12L = paid_order#34L) AND (tag#9 <=> mark#8)) AND (paid_at#36-T5000ms >= at#15-T5000ms))
      :- EventTimeWatermark 3e51f0cc-8f1c-4c19-9a73-0b5f6a9a1111, at#15: timestamp, 5 seconds
      :  +- Project [row#5.order_id AS a#12L, row#5.place.mark AS mark#8, row#5.at AS at#15, id#50L]
      :     +- Project [from_json(StructField(order_id,LongType,true), cast(value#1 as string)) AS row#5]
      :        +- SubqueryAlias workbench_source_0
      +- EventTimeWatermark 3e51f0cc-8f1c-4c19-9a73-0b5f6a9a2222, paid_at#36: timestamp, 10 seconds
         +- Project [number#30L AS paid_order#34L, lower(label#31) AS tag#9, paid_at#36]
            +- SubqueryAlias workbench_source_1
"""


def test_keys_have_each_name_from_the_source_on():
    assert set(grouped_by(PLAN)) == {"kind", "id"}
    assert set(joined_by(PLAN)) == {*("a", "order_id", "paid_order", "number"), *("tag", "label", "mark", "place.mark")}


def test_a_plan_without_state_has_no_keys():
    plan = "Project [a#1, b#2 AS c#3]\n+- Filter (a#1 = 2)"
    assert grouped_by(plan) == joined_by(plan) == ()


def test_watermarks_have_their_delays():
    assert watermarks_of(PLAN) == ("at, 5 seconds", "paid_at, 10 seconds")

"""The winners of one seller in q6, without Spark."""

from workbench.workload.nexmark.queries import Candidate, Winners


def test_highest_bid_wins_and_the_earliest_of_equals_until_the_watermark_reaches_the_expiry():
    winners = Winners([], [])
    for time, price in ((5, 100), (9, 300), (3, 300), (1, 200)):
        winners.offer(Candidate(auction=1, expires_us=1000, time_us=time, price=price))
    assert winners.leading[1] == Candidate(1, 1000, 3, 300)
    winners = Winners([Candidate(1, 2000, 0, 50)], [])
    assert [list(winners.close(at_us)) for at_us in (1999, 2000, 9999)] == [[], [(1, 50)], []]


def test_average_is_over_the_ten_latest_winning_bids_and_rounds_half_up():
    winners = Winners([], [(time, 1000 * time) for time in range(10)])
    winners.offer(Candidate(7, 100, 99, 10_005))
    total = sum(1000 * time for time in range(1, 10)) + 10_005
    assert list(winners.close(100)) == [(7, int(total / 10 + 0.5))]
    assert winners.recent[0] == (1, 1000)
    assert list(Winners([Candidate(1, 1, 2, 4)], [(1, 3)]).close(1)) == [(1, 4)]
    older = Winners([Candidate(1, 100, 1, 9999)], [(time, 10) for time in range(10, 20)])  # is not counted
    assert list(older.close(100)) == [(1, 10)]


def test_next_expiry_is_rounded_up_to_a_millisecond():
    assert Winners([], []).next_expiry_ms() is None
    assert Winners([Candidate(1, 5001, 0, 1), Candidate(2, 7000, 0, 1)], []).next_expiry_ms() == 6

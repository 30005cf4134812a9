"""A coordinator and two nodes with two devices each, for tests of groups; nothing of it may be left running."""
from cluster import wait_until
from one_coordinator import OneCoordinator

WORKERS = 4


class TwoNodes(OneCoordinator):
    def setUp(self):
        super().setUp()
        for node in ("a", "b"):
            self.cluster.start_agent(node, WORKERS // 2)

    def trains_beyond(self, job, rounds):
        wait_until(lambda: self.rounds(job) > rounds, 60, f"it trains beyond round {rounds}")

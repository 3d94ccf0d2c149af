"""The bounds of what a look at the metrics reads.

Owns:  how far one look goes, however much there is.
"""

from typing import Final

from holon.model.limits import AGENTS_COUNT_MAX

# A look at the metrics.
TALLY_PAGES_COUNT_MAX: Final = 64  # of events; what is left over is counted by the next look
CENSUS_ROWS_COUNT_MAX: Final = 5 * AGENTS_COUNT_MAX  # of agents that ever were, archived ones too

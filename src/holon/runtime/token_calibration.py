"""How large tokens are, as far as providers have told this host.

Owns:  one calibration per model, in memory. A restart begins anew: that may cost a cached prefix,
       and never more.
Rule 1: the figure in use stays until the mean has strayed from it: prompts are cut by it, and one
        that changed with every request would change their bytes.
"""

from holon.decide.token_estimate import UNCALIBRATED, Calibration, calibrated
from holon.model.compaction_limits import CALIBRATION_STRAY_PERCENT
from holon.model.turn import ModelFailed, ModelSpoke


class TokenCalibrations:
    """Calibrations of one host."""

    def __init__(self) -> None:
        self._means: dict[str, Calibration] = {}
        self._used: dict[str, Calibration] = {}

    def of(self, model_ref: str) -> Calibration:
        """Return what is known about a model's tokens."""
        return self._used.get(model_ref, UNCALIBRATED)

    def hear(self, answer: ModelSpoke | ModelFailed, *, request_bytes: int) -> None:
        """Learn from a round, if whoever answered it said how much it read."""
        if isinstance(answer, ModelSpoke) and answer.timeline is not None:
            model_ref, tokens = answer.timeline.active_model_ref, answer.usage.input_tokens
            if model_ref is not None and not answer.usage.is_estimated:
                self.learn(model_ref, request_bytes=request_bytes, reported_tokens=tokens)

    def learn(self, model_ref: str, *, request_bytes: int, reported_tokens: int) -> None:
        """Take in how many tokens a request turned out to have."""
        old = self._means.get(model_ref, UNCALIBRATED)
        mean = calibrated(old, request_bytes=request_bytes, reported_tokens=reported_tokens)
        self._means[model_ref] = mean
        used = self.of(model_ref).token_millibytes
        strayed = abs(mean.token_millibytes - used) * 100
        if strayed > used * CALIBRATION_STRAY_PERCENT:
            self._used[model_ref] = mean

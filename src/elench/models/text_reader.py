"""Text-to-text readers such as QuestEval's T5: they write the answer, or "unanswerable"."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from elench.models.base import Model
from elench.models.transformer import Loaded
from elench.requests import Read, Reading
from elench.text.answers import f1

UNANSWERABLE = "unanswerable"


def shared(given: str, confidence: float, gold: str, chance: float) -> float:
    """Expected F1 with the gold answer, counting the two answers whose probability is known."""
    same = f1(given, gold)
    return chance if same == 1.0 else chance + min(confidence, 1 - chance) * same


class TextReader(Model[Read, Reading]):
    """Reads "QUESTION </s> TEXT" and writes at most 20 tokens greedily, as QuestEval 0.2.4 does.

    P(unanswerable) is the probability that the answer begins with the first piece of "unanswerable".
    """

    role: ClassVar[str] = "reader"
    window = 512

    def __init__(self, loaded: Loaded) -> None:
        self.model, self.tokenizer = loaded.model, loaded.tokenizer

    def lengths(self, requests: Sequence[Read]) -> list[int]:
        return [min(len(r.question) // 4 + len(r.text) // 4 + 4, self.window) for r in requests]

    def answer(self, batch: Sequence[Read]) -> list[Reading]:
        import torch

        tokenizer, device = self.tokenizer, self.model.device
        sources = [f"{r.question} </s> {r.text}" for r in batch]
        inputs = tokenizer(sources, truncation=True, max_length=self.window, padding=True, return_tensors="pt").to(
            device
        )
        inputs.pop("token_type_ids", None)
        none = tokenizer(UNANSWERABLE, add_special_tokens=False)["input_ids"][0]
        with torch.inference_mode():
            out = self.model.generate(
                **inputs,
                max_new_tokens=20,
                num_beams=1,
                do_sample=False,
                output_logits=True,
                return_dict_in_generate=True,
            )
            logs = [step.float().log_softmax(-1) for step in out.logits]
            unanswerable = logs[0][:, none].exp().tolist()
            written = out.sequences[:, -len(logs) :]
            readings = []
            for row, request in enumerate(batch):
                text = tokenizer.decode(written[row], skip_special_tokens=True).strip()
                pieces = [t for t in written[row].tolist() if t != tokenizer.pad_token_id]
                confidence = float(sum(logs[k][row, t] for k, t in enumerate(pieces)).exp()) if pieces else 0.0
                given = "" if text.lower() == UNANSWERABLE else text
                at = request.text.find(given) if given else -1
                span = (at, at + len(given)) if at >= 0 else None
                gold = overlap = None
                if request.gold:
                    gold = self._gold(inputs, row, request.gold)
                    overlap = shared(given, confidence, request.gold, gold)
                readings.append(Reading(given, span, float(unanswerable[row]), confidence, gold, given, overlap))
        return readings

    def _gold(self, inputs: Any, row: int, gold: str) -> float:
        """Probability that the model writes exactly the gold answer."""
        import torch

        labels = self.tokenizer(gold, return_tensors="pt")["input_ids"].to(self.model.device)
        one = {k: v[row : row + 1] for k, v in inputs.items()}
        logs = self.model(**one, labels=labels).logits.float().log_softmax(-1)
        return float(torch.gather(logs, 2, labels[:, :, None]).sum().exp())

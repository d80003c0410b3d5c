"""The same networks in torch: for checkpoints from the hub or a folder, for GPUs, and for training.

Every class here answers in numpy what its counterpart in `elench.models.bert` answers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from elench.models.sharing import Layout, visibility
from elench.models.tokens import Ints, Tokens, padded, present
from elench.models.transformer import Loaded, window
from elench.requests import Floats

if TYPE_CHECKING:
    import torch
    from torch.nn import Module

PLAIN = ("bert", "roberta", "xlm-roberta", "electra", "camembert")
"""Encoders with nothing between the last layer and the output: layers above the one asked for can be left out."""
SLICE = 256
"""Positions whose log-probabilities over the whole vocabulary are held at once."""
FACTS = 9
"""Kinds of answer words that the keyphrase model distinguishes; 0 for what is not an answer word."""


class Network:
    """A transformers model that is called with padded rows."""

    def __init__(self, model: Module, tokens: Tokens) -> None:
        self.model, self.tokens = model, tokens

    def inputs(self, rows: Sequence[Sequence[int]], types: Ints | None = None) -> dict[str, Any]:
        import torch

        made = {"input_ids": padded(rows, self.tokens.filler), "attention_mask": present(rows)}
        if types is not None and self.tokens.typed:
            made["token_type_ids"] = types
        return {name: torch.from_numpy(values).to(self.model.device) for name, values in made.items()}

    def logits(self, rows: Sequence[Sequence[int]], types: Ints | None = None) -> Floats:
        """The output of a classifier's head, per row or per token."""
        import torch

        with torch.inference_mode():
            found: Floats = self.model(**self.inputs(rows, types)).logits.float().cpu().numpy()
        return found

    def spans(self, rows: Sequence[Sequence[int]], types: Ints) -> tuple[Floats, Floats]:
        """Start and end logits of a question-answering model."""
        import torch

        with torch.inference_mode():
            out = self.model(**self.inputs(rows, types))
        return out.start_logits.float().cpu().numpy(), out.end_logits.float().cpu().numpy()

    def masked(self, rows: Sequence[Sequence[int]], places: Sequence[tuple[int, int]], truth: Sequence[int]) -> Floats:
        """Log-probabilities of the true tokens at (row, place) pairs."""
        import torch

        with torch.inference_mode():
            logits = self.model(**self.inputs(rows)).logits
            at, where = (torch.tensor(side, device=logits.device) for side in zip(*places, strict=True))
            own = logits[at, where].float()
            right = own.gather(1, torch.tensor(list(truth), device=logits.device)[:, None])[:, 0]
            found: Floats = (right - own.logsumexp(1)).cpu().numpy()
        return found


class Encoder(Network):
    """Hidden states and attentions of any BERT-like checkpoint."""

    def __init__(self, loaded: Loaded, tokens: Tokens) -> None:
        super().__init__(loaded.model, tokens)
        config = self.model.config
        self.window = window(loaded)
        self.depth = int(getattr(config, "num_hidden_layers", 0) or config.n_layer)
        self.stack = self.model.encoder if config.model_type in PLAIN else None

    def states(self, rows: Sequence[Sequence[int]], *, layer: int) -> Floats:
        """Hidden states of padded rows at one layer (0: the embeddings)."""
        import torch

        with torch.inference_mode(), self._only(layer):
            whole = layer == len(self.stack.layer) if self.stack is not None else layer == self.depth
            out = self.model(**self.inputs(rows), output_hidden_states=not whole)
            states = out.last_hidden_state if whole else out.hidden_states[layer]
            found: Floats = states.float().cpu().numpy()
        return found

    @contextmanager
    def _only(self, layer: int) -> Iterator[None]:
        """While it holds, layers above the wanted one are not computed, where that cannot change the answer."""
        if self.stack is None or layer == self.depth:
            yield
            return
        whole = self.stack.layer
        self.stack.layer = whole[:layer]
        try:
            yield
        finally:
            self.stack.layer = whole

    def relate(self, rows: Sequence[Sequence[int]], types: Ints, places: Ints) -> tuple[Floats, Floats]:
        """Attention (highest of all heads) and cosine from the pieces at `places` to all: layers × batch × m × n."""
        import torch

        before = self.model.config._attn_implementation
        self.model.set_attn_implementation("eager")  # only eager attention hands its weights out
        at = torch.from_numpy(places).to(self.model.device)[:, :, None]
        attentions, cosines = [], []
        try:
            with torch.inference_mode():
                out = self.model(**self.inputs(rows, types), output_hidden_states=True, output_attentions=True)
                for attention, states in zip(out.attentions, out.hidden_states[1:], strict=True):
                    best = attention.float().amax(1)
                    attentions.append(best.gather(1, at.expand(-1, -1, best.shape[2])).cpu().numpy())
                    unit = torch.nn.functional.normalize(states.float(), dim=-1)
                    own = unit.gather(1, at.expand(-1, -1, unit.shape[2]))
                    cosines.append((own @ unit.transpose(1, 2)).cpu().numpy())
        finally:
            self.model.set_attn_implementation(before)
        return np.stack(attentions), np.stack(cosines)


class CausalNetwork(Network):
    """Log-probabilities of a decoder-only checkpoint, log-softmax at the wanted positions only."""

    def __init__(self, model: Module, tokens: Tokens) -> None:
        super().__init__(model, tokens)
        self.head = self._head()

    def logprobs(
        self, layouts: Sequence[Layout], wanted: Sequence[tuple[int, int]], tokens: Sequence[int]
    ) -> list[float]:
        """Log-probability of each token after the (row, place) before it."""
        import torch

        device, dtype = self.model.device, self.model.dtype
        with torch.inference_mode():
            inputs = {"input_ids": torch.from_numpy(padded([x.ids for x in layouts], self.tokens.filler)).to(device)}
            if any(any(x.branches) for x in layouts):
                positions, seen = (torch.from_numpy(side).to(device) for side in visibility(layouts))
                mask = torch.zeros(seen.shape, dtype=dtype, device=device).masked_fill_(~seen, torch.finfo(dtype).min)
                inputs |= {"position_ids": positions, "attention_mask": mask[:, None]}
            rows, places = (torch.tensor(side, device=device) for side in zip(*wanted, strict=True))
            right = torch.tensor(list(tokens), device=device)
            if self.head is None:
                states = self.model(**inputs, use_cache=False).logits[rows, places]
            else:
                states = self.model.base_model(**inputs, use_cache=False).last_hidden_state[rows, places]
            values: list[float] = []
            for a in range(0, len(tokens), SLICE):
                part = states[a : a + SLICE]
                logits = (part if self.head is None else self.head(part)).float()
                best = logits.gather(1, right[a : a + SLICE, None])[:, 0]
                values += (best - logits.logsumexp(1)).tolist()
        return values

    def _head(self) -> Module:
        """The output layer, if it alone lies between the last hidden state and the logits; else None."""
        import torch

        head, end = self.model.get_output_embeddings(), self.tokens.filler
        with torch.inference_mode():
            ids = torch.tensor([[end, end, end]], device=self.model.device)
            whole = self.model(ids, use_cache=False).logits
            own = head(self.model.base_model(ids, use_cache=False).last_hidden_state) if head is not None else None
        return head if own is not None and torch.equal(own, whole) else None


class Generator:
    """Writes endings with transformers' own search, one branch at a time: the reference for elench.models.branches,
    and for askers on a base that the shipped graphs do not fit."""

    def __init__(self, model: Module, end: int) -> None:
        self.model, self.end = model, end

    def write(
        self, texts: Sequence[Sequence[int]], wishes: Sequence[Sequence[Sequence[int]]], beams: int, limit: int
    ) -> list[list[list[list[int]]]]:
        """For each text and each of its wishes (the tokens a branch begins with) up to `beams` endings, best first."""
        pairs = zip(texts, wishes, strict=True)
        return [[self._endings([*text, *wish], beams, limit) for wish in own] for text, own in pairs]

    def _endings(self, prompt: list[int], beams: int, limit: int) -> list[list[int]]:
        import torch

        ids = torch.tensor([prompt], device=self.model.device)
        with torch.inference_mode():
            out = self.model.generate(
                ids,
                attention_mask=torch.ones_like(ids),
                max_new_tokens=limit,
                num_beams=beams,
                num_return_sequences=beams,
                do_sample=False,
                early_stopping=beams > 1 or None,
                eos_token_id=self.end,
                pad_token_id=self.end,
            )
        return [[t for t in row if t != self.end] for row in out[:, len(prompt) :].tolist()]


class TokenClassifier(Network):
    """A plain BERT token classifier as keyphrase model; as in the authors' checkpoint, its first class is "key"."""

    def keyphrase_logits(self, rows: Sequence[Sequence[int]], types: Ints, facts: Ints) -> Floats:
        return self.logits(rows, types)[..., 1::-1]


class TrainedKeyphrases:
    """A keyphrase network in training, or on another base than the embedded encoder."""

    def __init__(self, network: Module) -> None:
        self.network = network

    def keyphrase_logits(self, rows: Sequence[Sequence[int]], types: Ints, facts: Ints) -> Floats:
        import torch

        made = {"input_ids": padded(rows), "attention_mask": present(rows), "token_type_ids": types, "facts": facts}
        with torch.inference_mode():
            found: Floats = self.network(**{k: torch.from_numpy(v) for k, v in made.items()}).float().numpy()
        return found


# --- what elench trains ----------------------------------------------------------------------------------------------


def quiet() -> None:
    """No progress bars and warnings from transformers."""
    from transformers import logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()


def build_reader(base: Path, settings: Mapping[str, Any]) -> Module:
    """The untrained span model on a base encoder."""
    import torch
    from transformers import AutoModelForQuestionAnswering

    quiet()
    return AutoModelForQuestionAnswering.from_pretrained(base, use_safetensors=True, dtype=torch.float32)


def build_classifier(base: Path, settings: Mapping[str, Any]) -> Module:
    """The untrained classifier on a base encoder, for `settings["labels"]`."""
    import torch
    from transformers import AutoModelForSequenceClassification

    quiet()
    labels, kind = len(settings["labels"]), AutoModelForSequenceClassification
    return kind.from_pretrained(base, num_labels=labels, use_safetensors=True, dtype=torch.float32)


def build_masked(base: Path, settings: Mapping[str, Any]) -> Module:
    """The untrained masked-word model on a base encoder."""
    from transformers import AutoModelForMaskedLM

    quiet()
    return AutoModelForMaskedLM.from_pretrained(base, use_safetensors=True)


def build_classes(base: Path, settings: Mapping[str, Any]) -> Module:
    """The encoder in a folder with an untrained head for `settings["labels"]`."""
    import torch
    from transformers import AutoModel

    quiet()
    encoder = AutoModel.from_pretrained(
        base, add_pooling_layer=False, attention_probs_dropout_prob=0.0, use_safetensors=True
    )
    head = torch.nn.Linear(2 * encoder.config.hidden_size, len(settings["labels"]))
    torch.nn.init.normal_(head.weight, std=0.02)
    torch.nn.init.zeros_(head.bias)
    return torch.nn.ModuleDict({"encoder": encoder, "head": head})


def class_logits(net: Module, ids: torch.Tensor, mask: torch.Tensor, dropout: float = 0.0) -> torch.Tensor:
    """Fine-class logits of padded questions: one layer on [mean of all pieces; first piece]."""
    import torch

    states = net["encoder"](input_ids=ids, attention_mask=mask).last_hidden_state
    weights = mask.unsqueeze(-1).to(states.dtype)
    pooled = torch.cat([(states * weights).sum(1) / weights.sum(1), states[:, 0]], dim=-1)
    scores: torch.Tensor = net["head"](torch.nn.functional.dropout(pooled, dropout, net.training))
    return scores


def build_keyphrases(base: Path, settings: Mapping[str, Any]) -> Module:
    """The keyphrase network on the base encoder in a folder: facts added to the word embeddings, two classes on top."""
    import torch
    from transformers import AutoModel

    quiet()
    encoder = AutoModel.from_pretrained(
        base, add_pooling_layer=False, attention_probs_dropout_prob=0.0, use_safetensors=True
    )

    class Keyphrases(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            width = encoder.config.hidden_size
            self.encoder = encoder
            self.facts = torch.nn.Embedding(FACTS, width, padding_idx=0)
            self.head = torch.nn.Linear(width, 2)
            torch.nn.init.zeros_(self.facts.weight)

        def forward(
            self,
            input_ids: torch.Tensor,
            token_type_ids: torch.Tensor,
            attention_mask: torch.Tensor,
            facts: torch.Tensor,
        ) -> torch.Tensor:
            vectors = self.encoder.embeddings.word_embeddings(input_ids) + self.facts(facts)
            states = self.encoder(
                inputs_embeds=vectors, token_type_ids=token_type_ids, attention_mask=attention_mask
            ).last_hidden_state
            logits: torch.Tensor = self.head(states)
            return logits

    return Keyphrases()

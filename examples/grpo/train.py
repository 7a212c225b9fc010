"""GRPO in one file: an answer agent learns from the rewards of its own replies.

For each prompt the model writes a group of replies. The advantage of a reply is its reward minus the mean of its group,
divided by the standard deviation (Shao et al., 2024, arXiv 2402.03300, section 4.1.2). A step makes the tokens of each
reply more or less likely by its advantage. Each reply is used once, so nothing is clipped; there is no reference model.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from itertools import cycle, islice

import pyarrow.parquet as pq
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

GROUP, PROMPTS, TOKENS, RATE = 8, 4, 64, 1e-5
ANSWER = re.compile(r"<answer>([^<]*)</answer>\s*$")


def reward(reply: str, answers: list[str]) -> float:
    """Return the best F1 of the reply's answer by words, and 0 for a reply of another form."""
    match = ANSWER.search(reply)
    words = re.findall(r"\w+", match[1].lower()) if match else []
    best = 0.0
    for answer in answers:
        gold = re.findall(r"\w+", answer.lower())
        common = sum((Counter(words) & Counter(gold)).values())
        best = max(best, 2 * common / max(1, len(words) + len(gold)))
    return best


def step(model, tokenizer, optimiser, rows: list[dict]) -> float:
    """Take one step of learning and return the mean reward."""
    rewards = []
    optimiser.zero_grad()
    for row in rows:
        text = tokenizer.apply_chat_template(row["prompt"], tokenize=False, add_generation_prompt=True)
        prompt = tokenizer(text, return_tensors="pt", add_special_tokens=False).to(model.device)
        with torch.no_grad():
            tokens = model.generate(
                **prompt, do_sample=True, max_new_tokens=TOKENS, num_return_sequences=GROUP,
                top_k=0, top_p=1.0, temperature=1.0, repetition_penalty=1.0, pad_token_id=tokenizer.pad_token_id,
            )  # fmt: skip
        replies = tokens[:, prompt.input_ids.shape[1] :]
        texts = tokenizer.batch_decode(replies, skip_special_tokens=True)
        group = torch.tensor([reward(text, row["extra_info"]["answers"]) for text in texts])
        rewards.append(group.mean().item())
        if group.std() == 0:  # all replies are equally good, so that the group teaches nothing
            continue
        advantages = ((group - group.mean()) / (group.std() + 1e-6)).to(model.device)
        ended = (replies == tokenizer.eos_token_id).cumsum(1)
        mask = (ended - (replies == tokenizer.eos_token_id).long()) == 0  # up to the first end, which is learned too
        logits = model(tokens).logits[:, prompt.input_ids.shape[1] - 1 : -1].float()
        likelihood = torch.log_softmax(logits, -1).gather(2, replies.unsqueeze(2)).squeeze(2)
        loss = -(likelihood * advantages.unsqueeze(1) * mask).sum() / (mask.sum() * len(rows))
        loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimiser.step()
    return sum(rewards) / len(rewards)


def main(name: str, rows: str, out: str, steps: str) -> None:
    tokenizer, model = AutoTokenizer.from_pretrained(name), AutoModelForCausalLM.from_pretrained(name)
    optimiser = torch.optim.AdamW(model.parameters(), lr=RATE)
    data = cycle(pq.read_table(rows).to_pylist())
    for number in range(1, int(steps) + 1):
        print(f"step {number}: reward {step(model, tokenizer, optimiser, list(islice(data, PROMPTS))):.3f}")
    model.save_pretrained(out)
    tokenizer.save_pretrained(out)


if __name__ == "__main__":
    main(*sys.argv[1:])

"""A small language model of a text's bytes by Hugging Face's Trainer (pip install transformers accelerate).

usage: with_huggingface.py TEXT [--epochs N] [--save FOLDER]
"""
import argparse
import pathlib
import tempfile

import torch
import transformers
from tactus_train.huggingface import TactusTrainer


class Pieces(torch.utils.data.Dataset):
    def __init__(self, text, length=64):
        values = torch.frombuffer(bytearray(text), dtype=torch.uint8).long()
        self.pieces = values[:len(values) // length * length].view(-1, length)

    def __len__(self):
        return len(self.pieces)

    def __getitem__(self, index):
        return {"input_ids": self.pieces[index], "labels": self.pieces[index]}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("text", type=pathlib.Path)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--save", default=tempfile.gettempdir() + "/tactus-bytes")
    options = parser.parse_args()
    pieces = Pieces(options.text.read_bytes())
    held = max(1, len(pieces) // 10)
    transformers.set_seed(1)
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config(
        vocab_size=256, n_positions=64, n_embd=64, n_layer=2, n_head=2, bos_token_id=0, eos_token_id=0))
    trainer = TactusTrainer(
        model=model, tactus={"name": "bytes"},
        args=transformers.TrainingArguments(
            output_dir=options.save, num_train_epochs=options.epochs, per_device_train_batch_size=16,
            learning_rate=1e-2, use_cpu=True, save_strategy="no", logging_strategy="no", report_to="none",
            disable_tqdm=True),
        train_dataset=torch.utils.data.Subset(pieces, range(held, len(pieces))),
        eval_dataset=torch.utils.data.Subset(pieces, range(held)))
    trainer.train()
    loss = trainer.evaluate()["eval_loss"]
    trainer.save_model()
    if trainer.is_world_process_zero():
        print(f"loss {loss:.3f}: {trainer.run.reason}")


if __name__ == "__main__":
    main()

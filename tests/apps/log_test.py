#!/usr/bin/env python3
"""Tests the logs of --log: metrics.csv, and the event files of TensorBoard, which are read here
byte by byte."""
import csv
import json
import shutil
import struct

import cli

TRAIN = ("train", "--data", "twin:cora@0.2", "--model", "gcn", "--hidden", 8, "--device", "cpu", "--plan", "off",
         "--select", "loss", "--eval-every", 2, "--checkpoint", "run")


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def masked(data):
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def records(data):
    """Yields the records of an event file, after checking their checksums."""
    while data:
        (length,) = struct.unpack("<Q", data[:8])
        assert struct.unpack("<I", data[8:12])[0] == masked(data[:8]), "the checksum of a length is wrong"
        record = data[12:12 + length]
        assert struct.unpack("<I", data[12 + length:16 + length])[0] == masked(record), "the checksum of a record is wrong"
        data = data[16 + length:]
        yield record


def fields(message):
    """Yields the numbers and values of the fields of a protocol buffer."""
    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    at = 0
    while at < len(message):
        key = varint()
        kind = key % 8
        if kind == 0:
            value = varint()
        else:
            size = {1: 8, 5: 4}.get(kind) or varint()
            value = message[at:at + size]
            at += size
            if kind != 2:
                value = struct.unpack("<d" if kind == 1 else "<f", value)[0]
        yield key // 8, value


class Logs(cli.CliTest):
    def lines(self):
        return [json.loads(line) for line in (self.dir / "run/metrics.jsonl").read_text().splitlines()]

    def check_csv(self, epochs):
        with open(self.dir / "run/metrics.csv", newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual([int(row["epoch"]) for row in rows], list(range(1, epochs + 1)))
        for row, line in zip(rows, self.lines(), strict=True):
            for key in ("loss", "lr", "seconds", "train", "val", "test", "val_loss"):
                self.assertEqual(float(row[key]) if row[key] else None, line.get(key), (key, line))

    def events(self):
        """Returns the scalars of all event files as {tag: {step: value}}, as TensorBoard joins
        them."""
        found = {}
        for path in sorted((self.dir / "run/tensorboard").iterdir(), key=lambda path: path.stat().st_mtime_ns):
            self.assertIn("tfevents", path.name)
            for number, record in enumerate(records(path.read_bytes())):
                event = dict(fields(record))
                self.assertGreater(event[1], 1.7e9)
                if number == 0:
                    self.assertEqual(event[3], b"brain.Event:2")
                if 7 in event:  # this event says that the run starts again at this step
                    self.assertEqual(event[7], b"\x08\x01")
                    found = {tag: {s: v for s, v in values.items() if s < event[2]} for tag, values in found.items()}
                for kind, value in fields(event.get(5, b"")):
                    self.assertEqual(kind, 1)
                    scalar = dict(fields(value))
                    found.setdefault(scalar[1].decode(), {})[event[2]] = scalar[2]
        return found

    def check_events(self):
        found = self.events()
        for tag, key in (("loss/train", "loss"), ("loss/val", "val_loss"), ("accuracy/test", "test"), ("lr", "lr"),
                         ("accuracy/val", "val"), ("accuracy/train", "train"), ("seconds", "seconds")):
            expected = {line["epoch"]: struct.unpack("<f", struct.pack("<f", line[key]))[0]
                        for line in self.lines() if line.get(key) is not None}
            self.assertEqual(found[tag], expected, tag)

    def test_both(self):
        self.ok(*TRAIN, "--epochs", 7, "--log", "tensorboard,csv", "--checkpoint-every", 2, "--keep", 9)
        self.check_csv(7)
        self.check_events()
        # A run that continues from an earlier epoch must write the later epochs again.
        for epoch in (6, 7):
            shutil.rmtree(self.dir / f"run/epoch-{epoch:06}")
        (self.dir / "run/model.safetensors").unlink()
        self.ok("train", "--resume", "run")
        self.check_csv(7)
        self.check_events()
        self.assertEqual(len(list((self.dir / "run/tensorboard").iterdir())), 2)

    def test_an_epoch_that_could_not_be_written(self):
        self.ok(*TRAIN, "--epochs", 6, "--log", "tensorboard,csv", "--checkpoint-every", 2, "--keep", 9)
        # As if the disk had been full when epoch 4 was written to the logs.
        shutil.rmtree(self.dir / "run/epoch-000006")
        (self.dir / "run/model.safetensors").unlink()
        table = self.dir / "run/metrics.csv"
        lines = table.read_text().splitlines(keepends=True)
        table.write_text("".join(lines[:4]) + lines[4][:-5])
        (path,) = (self.dir / "run/tensorboard").iterdir()
        data, kept = path.read_bytes(), 0
        for record in records(data):
            if dict(fields(record)).get(2, 0) > 3:
                break
            kept += 16 + len(record)
        path.write_bytes(data[:kept])
        self.assertNotIn(4, self.events()["loss/train"])
        self.ok("train", "--resume", "run")
        self.check_csv(6)
        self.check_events()

    def test_a_log_that_begins_with_a_resumed_run(self):
        self.ok(*TRAIN, "--epochs", 5, "--checkpoint-every", 2, "--keep", 9)
        for epoch in (4, 5):
            shutil.rmtree(self.dir / f"run/epoch-{epoch:06}")
        (self.dir / "run/model.safetensors").unlink()
        self.ok("train", "--resume", "run", "--log", "csv")
        self.check_csv(5)

    def test_tensorboard_itself(self):
        try:
            from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
        except ImportError:
            self.skipTest("tensorboard is not installed")
        self.ok(*TRAIN, "--epochs", 3, "--log", "tensorboard")
        board = EventAccumulator(str(self.dir / "run/tensorboard"))
        board.Reload()
        for tag, values in self.events().items():
            read = board.Tags()["scalars"] and {event.step: event.value for event in board.Scalars(tag)}
            self.assertEqual(read, values)

    def test_wrong_usage(self):
        self.refused(*TRAIN[:-2], "--no-checkpoint", "--log", "csv", says="--log: writes files into the run folder")
        self.refused(*TRAIN, "--log", "exel", says="unknown log 'exel'")


if __name__ == "__main__":
    cli.main()

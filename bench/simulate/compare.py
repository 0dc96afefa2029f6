#!/usr/bin/env python3
"""Compares epochs that nacre simulate predicts with epochs that nacre train measures.

    bench/simulate/compare.py build/release/nacre --devices cpu:1,cpu:1 --data twin:arxiv
    bench/simulate/compare.py build/release/nacre --h200 --data products.nacre reddit.nacre

For each device of a configuration, `nacre explain --save-profile` measures the kernels of the model
on that device while the others rest. The simulation gets these profiles, and how much of the memory
rates is left to each device while all run (`together`). Then the same configuration is trained.
--h200 takes four parts of 32 multiprocessors, and unequal parts of 16, 32, 64 and of 8, 24, 80,
with the shares of memory rates that were measured on an H200 by gathering rows of 1 KiB.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

# Ways to divide an H200 into parts: the multiprocessors of each part, and for each size of part the
# share of the memory rates that is left to it if all parts work.
H200 = {
    "four of 32": ((32, 32, 32, 32), {32: 0.97 / 2.17}),
    "16, 32, 64": ((16, 32, 64), {16: 0.89 / 1.15, 32: 1.44 / 2.17, 64: 2.25 / 3.44}),
    "8, 24, 80": ((8, 24, 80), {8: 0.53 / 0.60, 24: 1.28 / 1.68, 80: 2.82 / 3.69}),
}
H200_CACHE = 50  # MiB of second-level cache
H200_MEMORY = 139  # GiB of memory


class Comparison:
    def __init__(self, options, folder):
        self.options = options
        self.folder = folder
        self.profiles = {}
        self.ratios = []

    def nacre(self, command, *arguments):
        words = [self.options.nacre, command, *map(str, arguments)]
        done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if done.returncode != 0:
            sys.exit(f"{' '.join(words)}\n{done.stderr}")
        return json.loads(done.stdout.splitlines()[-1]) if "--json" in arguments else None

    def model(self, data, name):
        o = self.options
        return ("--data", data, "--model", name, "--layers", o.layers, "--hidden", o.hidden, "--dropout", 0.5, "-q")

    def profile(self, data, model, device):
        """Returns the file with the rates of a device for this model on these data."""
        key = (data, model, device)
        if key not in self.profiles:
            path = self.folder / f"profile-{len(self.profiles)}.json"
            where = ["--device", device, "--precision", self.options.precision]
            if device.startswith("cpu:"):
                where = ["--device", "cpu", "--threads", device[4:]]
            self.nacre("explain", *self.model(data, model), *where, "--plan", "off", "--steps", 5, "--save-profile", path)
            self.profiles[key] = path
        return self.profiles[key]

    def hardware(self, data, model, devices, together):
        """Writes the description of the devices, and returns its path."""
        text = 'name = "devices of this machine"\noverlap = false\n'
        counts = {device: devices.count(device) for device in devices}
        total = sum(int(d.split("@")[1]) for d in devices if "@" in d)
        for device, count in counts.items():
            text += f'\n[[device]]\nname = "{device}"\ncount = {count}\ntogether = {together.get(device, 1):.4f}\n'
            text += f'profile = "{self.profile(data, model, device)}"\n'
            if device.startswith("cpu"):
                text += 'kind = "cpu"\n'
            elif "@" in device:
                parts = int(device.split("@")[1])
                text += f'multiprocessors = {parts}\ncache = "{H200_CACHE * parts / total:.1f}M"\n'
                text += f'memory = "{H200_MEMORY * parts / total:.1f}G"\n'
        text += f"\n[inside]\nlatency = {self.options.latency}\n"
        path = self.folder / "hardware.toml"
        path.write_text(text)
        return path

    def compare(self, title, data, model, devices, shares, together):
        ranks = ("--shares", ",".join(map(str, shares)), "--halo-rows", self.options.halo_rows)
        precision = () if devices[0].startswith("cpu") else ("--precision", self.options.precision)
        hardware = self.hardware(data, model, devices, together)
        simulated = self.nacre("simulate", *self.model(data, model), *precision, *ranks, "--hardware", hardware,
                               "--ranks", len(devices), "--json")["runs"][0]
        trained = self.nacre("train", *self.model(data, model), *precision, *ranks, "--devices", ",".join(devices),
                             "--epochs", self.options.epochs, "--eval-every", self.options.epochs, "--no-checkpoint",
                             "--json")
        ratio = simulated["epoch_ms"] / trained["epoch_ms_median"]
        self.ratios.append(ratio)
        name = pathlib.Path(data).stem if data.endswith(".nacre") else data
        print(f"{name:<16} {model:<6} {title:<16} predicted {simulated['epoch_ms']:>9.2f} ms, measured "
              f"{trained['epoch_ms_median']:>9.2f} ms ({trained['epoch_ms_p10']:.2f} to {trained['epoch_ms_p90']:.2f}), "
              f"ratio {ratio:.3f}{'' if abs(ratio - 1) <= 0.15 else '  MISSED'}", flush=True)

    def compare_one(self, data, model, device):
        """Compares one device by itself, which says how well its profile fits."""
        where = ("--device", device, "--precision", self.options.precision)
        if device.startswith("cpu:"):
            where = ("--device", "cpu", "--threads", device[4:])
        hardware = self.hardware(data, model, [device], {})
        precision = () if device.startswith("cpu") else ("--precision", self.options.precision)
        simulated = self.nacre("simulate", *self.model(data, model), *precision, "--plan", "off", "--hardware", hardware,
                               "--ranks", 1, "--json")["runs"][0]
        trained = self.nacre("train", *self.model(data, model), *where, "--plan", "off", "--epochs", self.options.epochs,
                             "--eval-every", self.options.epochs, "--no-checkpoint", "--json")
        name = pathlib.Path(data).stem if data.endswith(".nacre") else data
        print(f"{name:<16} {model:<6} {device:<16} predicted {simulated['epoch_ms']:>9.2f} ms, measured "
              f"{trained['epoch_ms_median']:>9.2f} ms alone, ratio "
              f"{simulated['epoch_ms'] / trained['epoch_ms_median']:.3f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("nacre")
    parser.add_argument("--data", nargs="+", default=["twin:arxiv"])
    parser.add_argument("--models", nargs="+", default=["gcn", "sage"])
    parser.add_argument("--devices", help="a list for nacre train --devices")
    parser.add_argument("--together", type=float, default=1, help="share of the memory rates left to each device")
    parser.add_argument("--h200", action="store_true", help="compare the configurations of parts of an H200")
    parser.add_argument("--layers", type=int, default=3)
    parser.add_argument("--hidden", type=int, default=256)
    parser.add_argument("--precision", default="tf32")
    parser.add_argument("--halo-rows", default="auto")
    parser.add_argument("--latency", type=float, default=30e-6, help="seconds for a communication")
    parser.add_argument("--epochs", type=int, default=16)
    options = parser.parse_args()
    if not options.h200 and not options.devices:
        parser.error("give --devices or --h200")
    with tempfile.TemporaryDirectory(prefix="nacre-simulate-") as folder:
        comparison = Comparison(options, pathlib.Path(folder))
        for data in options.data:
            for model in options.models:
                if options.devices:
                    devices = options.devices.split(",")
                    comparison.compare_one(data, model, devices[0])
                    together = {device: options.together for device in devices}
                    comparison.compare("given", data, model, devices, [1] * len(devices), together)
                    continue
                comparison.compare_one(data, model, "cuda:0@128")
                for title, (parts, together) in H200.items():
                    devices = [f"cuda:0@{part}" for part in parts]
                    comparison.compare(title, data, model, devices, [part // 8 for part in parts],
                                       {f"cuda:0@{part}": share for part, share in together.items()})
        far = max(comparison.ratios, key=lambda ratio: abs(ratio - 1))
        print(f"{sum(abs(r - 1) <= 0.15 for r in comparison.ratios)} of {len(comparison.ratios)} within 15 %; "
              f"farthest ratio {far:.3f}")


if __name__ == "__main__":
    main()

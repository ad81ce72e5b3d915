"""The measurements as a Markdown table."""

from __future__ import annotations

from benchmarks.gpu.measure import LAWS, TOPS
from benchmarks.record import Record


def markdown(record: Record) -> str:
    """What was measured on, then a row for every law and P; rates in nodes a second."""
    gpu = record.machine["gpu"]
    facts = ", ".join(f"{name} {value}" for name, value in gpu.items() if value)
    lines = [
        f"{facts}; host {record.machine['cpu']}, {record.machine['cores']} processors; "
        f"brwsim {record.versions.get('brwsim')} at {record.commit.get('hash')}, {record.date}",
        "",
        "| law | P | GPU kernels, nodes/s | GPU blocks, nodes/s | host, nodes/s | kernels against host |",
        "|---|---|---|---|---|---|",
    ]
    for name in LAWS:
        for P in TOPS:
            kernel, blocks, host = (
                record.measurements[f"{kind}/{name}/{P}"].median for kind in ("kernel", "blocks", "host")
            )
            lines.append(
                f"| {name} | {P} | {kernel:.2e} | {blocks:.2e} | {host:.2e} | {kernel / host:.1f} times |"
            )
    return "\n".join(lines)

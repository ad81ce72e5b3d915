"""The stress test of the i.i.d. assumption: a process beside its i.i.d. surrogate and what theory says of both."""

"""The kernel body: scalars and caller-owned arrays only, no allocation, no NumPy calls.

Imported as it is, the body is compiled for the CPU. ``brwsim.kernels.cuda`` imports the same files a
second time under another package name, whose ``target.jit`` compiles for the GPU.
"""

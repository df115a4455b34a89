import sys

from benchmarks.pages import rewrite

print(rewrite(check="--check" in sys.argv))

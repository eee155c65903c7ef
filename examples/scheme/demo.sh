#!/bin/sh
# demo.sh SCHEME PROGRAMS_DIR - runs the example programs one after the other in
# one garbage-collected heap, and reports what they did to the memory.
set -eu

if [ $# -ne 2 ]; then
	echo "usage: demo.sh SCHEME PROGRAMS_DIR" >&2
	exit 2
fi

cat <<END
A Scheme interpreter in C whose data - pairs, strings, closures, compiled code
- lives on an rtheap heap.  It frees nothing: the collector finds what is in
use from the C stack and one registered struct.  All programs run in one heap:

END
exec "$1" --report "$2"/*.scm

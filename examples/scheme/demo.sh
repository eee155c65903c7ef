#!/bin/sh
# demo.sh SCHEME PROGRAMS_DIR - the example programs, one after the other in
# one garbage-collected heap, and what they did to the memory.
set -eu

if [ $# -ne 2 ]; then
	echo "usage: demo.sh SCHEME PROGRAMS_DIR" >&2
	exit 2
fi

cat <<END
A Scheme interpreter whose data - pairs, strings, closures, the frames of its
procedures, its compiled code - lives on an rtheap heap.  It knows nothing of
freeing: the collector finds what is in use from the stack and one registered
struct.  Programs from $2:

END
exec "$1" --report "$2"/*.scm

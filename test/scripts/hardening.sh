#!/bin/sh
# hardening.sh - the libraries are what configure said: canaries and marked
# branch targets, no executable stack, nothing writable that is executable, and
# nothing of the shared library writable that need not be.
#
# RT_HARDENING_CFLAGS are the options that configure has chosen.  The script
# looks for their effects in the object of the static library, which is all
# ours.  _FORTIFY_SOURCE leaves no trace where every size is known.
#
# usage: [srcdir=DIR] [top_builddir=DIR] RT_HARDENING_CFLAGS=... test/scripts/hardening.sh
set -u
srcdir=${srcdir:-.}
# shellcheck source=test/scripts/verdict.sh
. "$srcdir/test/scripts/verdict.sh"
builddir=${top_builddir:-.}
object=$builddir/rtheap.o
shared=$builddir/.libs/librtheap.so

# chosen OPTION: true if configure has taken it.
chosen() {
	case " ${RT_HARDENING_CFLAGS-} " in
	*" $1 "*) return 0 ;;
	esac
	return 1
}

# has PATTERN FILE OPTION...: requires that readelf prints a line like that.
has() {
	pattern=$1
	file=$2
	shift 2
	LC_ALL=C ${READELF:-readelf} -W "$@" "$file" | grep -Eq "$pattern"
}

# has_not PATTERN FILE OPTION...: requires that readelf can read the file and
# prints no such line.
has_not() {
	has . "$2" -h && ! has "$@"
}

check_object() {
	if chosen -fstack-protector-strong; then
		has ' UND __stack_chk_(fail|guard)' "$object" -s
		verdict $? "frames with arrays have a canary"
	fi
	if chosen -fcf-protection=full; then
		has 'x86 feature: .*IBT.*SHSTK' "$object" -n
		verdict $? "branch targets are marked"
	fi
	if chosen -mbranch-protection=standard; then
		has 'AArch64 feature: .*BTI.*PAC' "$object" -n
		verdict $? "branch targets are marked, return addresses signed"
	fi
	has ' \.note\.GNU-stack ' "$object" -S
	verdict $? "the object says what stack it needs"
	has_not ' \.note\.GNU-stack .* [AWM]*X' "$object" -S
	verdict $? "the object needs no executable stack"
}

check_shared() {
	has ' GNU_STACK .* RW ' "$shared" -l
	verdict $? "the stack is not executable"
	has_not ' LOAD .* (RWE|W E) ' "$shared" -l
	verdict $? "no segment is writable and executable"
	has ' GNU_RELRO ' "$shared" -l
	verdict $? "relocated data is read-only once it is relocated"
	has 'BIND_NOW' "$shared" -d
	verdict $? "all of it is relocated before the library runs"
	has_not 'TEXTREL' "$shared" -d
	verdict $? "code is not relocated"
}

[ ! -e "$object" ] || check_object
[ ! -e "$shared" ] || check_shared
[ $passed -gt 0 ]
verdict $? "there is a library"

verdict_sum

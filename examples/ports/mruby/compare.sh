# shellcheck shell=sh
# compare.sh - what port_mruby.sh looks at in a run of mruby's tests, and in the
# port's sources.
#
# A log has what both test programs print with -v: the name of each test, and
# how it ends.  It also has their exit status.  The notes have a line for each
# process of the run, which gc.c writes.
#
# usage: . "$srcdir/examples/ports/mruby/compare.sh"

# outcomes LOG TREE prints a log without what differs from run to run: times,
# addresses, and the folder of the build.
outcomes() {
	sed -e '/^ *Time: /d' -e 's/0x[0-9a-f]*/0x/g' -e "s|$2|TREE|g" "$1"
}

# sums prints what mruby's test programs count at the end of a log.
sums() {
	sed -n 's/^ *\([TOKCWS][A-Za-z]*\): *\([0-9][0-9]*\)$/\1 \2/p' "$1"
}

# is_whole LOG: both programs have named their tests, counted as many, and have
# ended; and some tests pass.
is_whole() {
	[ "$(grep -c '^test:run:[a-z]*: status [0-9]*$' "$1")" = 2 ] &&
		[ "$(sums "$1" | grep -c '^OK [1-9]')" = 2 ] &&
		[ "$(sums "$1" | awk '/^Total/ { n += $2 } END { print n }')" = \
			"$(grep -c '^\(.* : \)\{0,1\}[.?FWX]$' "$1")" ]
}

# alike_logs LOG TREE STOCKLOG STOCKTREE: each test ends in the same way in both
# runs, and so do the programs.  Prints the differences.
alike_logs() {
	outcomes "$3" "$4" >"$1.want"
	outcomes "$1" "$2" >"$1.got"
	diff "$1.want" "$1.got"
}

# each_process NOTES CONDITION: the condition of awk holds for each process.  In
# it a note's name is an index of v.  Prints the lines for which it does not
# hold.
each_process() {
	awk '{ split("", v); for (i = 1; i < NF; i += 2) v[$i] = $(i + 1) }
		!('"$2"') { print; wrong = 1 }
		END { exit wrong }' "$1"
}

# some NOTES NAME: the sum of a note over all processes is not 0.  Prints it.
some() {
	awk -v name="$2" '
		{ for (i = 1; i < NF; i += 2) if ($i == name) n += $(i + 1) }
		END { print name ": " n + 0; exit !n }' "$1"
}

# verified NOTES: the heap was verified whenever a state ended.  A process that
# calls exit() ends none.
verified() {
	some "$1" states && each_process "$1" 'v["verified"] >= v["states"]'
}

# collected NOTES N: one allocation in N collected.
collected() {
	some "$1" collections && each_process "$1" \
		'v["collections"] >= int(v["allocations"] / '"$2"')'
}

# overwritten NOTES: freed memory is overwritten.
overwritten() {
	some "$1" overwritten && each_process "$1" 'v["overwritten"] == 1'
}

# asked NOTES N: each collection has asked for an object's references N times.
# checkmark and tracecheck each ask once more.
asked() {
	some "$1" collections && each_process "$1" \
		'v["asked"] == '"$2"' * v["collections"]'
}

# as_many NOTES NOTES: two runs have as many processes.
as_many() {
	[ "$(wc -l <"$1")" -eq "$(wc -l <"$2")" ]
}

# told ERRORS: tracecheck has found the words that mruby leaves behind the ends
# of short strings and arrays, which shows that it has looked.  It has found
# nothing else.  Prints the rest.
told() {
	grep -q '"\(String\|Array\)", offset [0-9]*: untold ' "$1" &&
		! grep 'rtheap: tracecheck: ' "$1" |
		grep -v '"\(String\|Array\)", offset [0-9]*: untold '
}

# changes FOLDER FOLDER prints how many lines the second one adds to mruby's own
# files and removes from them, and in how many files.  A line that is replaced
# is one of each.  Left out are gc.c, which is replaced as a whole, rtheap.h,
# which is new, and what a build makes.
changes() {
	diff -r -N -x build -x bin -x gc.c -x rtheap.h "$1" "$2" |
		awk '/^>/ { add++ } /^</ { del++ } /^diff / { files++ }
			END { print add + 0, del + 0, files + 0 }'
}

# patched PATCH prints the same for a patch.
patched() {
	awk '/^[+][+][+] / { files++; next } /^--- / { next }
		/^[+]/ { add++ } /^-/ { del++ }
		END { print add + 0, del + 0, files + 0 }' "$1"
}

# code_lines FILE prints how many lines are neither empty nor only a comment.
code_lines() {
	grep -c -v '^[[:space:]]*\(//.*\)\{0,1\}$' "$1"
}

# sizes ADDED REMOVED FILES HEADER prints the sentences that README.md has.
sizes() {
	lines=$(($(wc -l <"$4")))
	code=$(code_lines "$4")
	cat <<-END
		In $3 files of mruby $(($1 + $2)) lines change: $1 are added and $2 removed.
		\`rtheap.h\` is a new file of $lines lines, of which $code are code.
		The changed lines and this code are $(($1 + $2 + code)) lines together.
	END
}

# has_sizes README ADDED REMOVED FILES HEADER: it has these sentences, wherever
# its lines end.  Prints what it should have.
has_sizes() {
	want=$(sizes "$2" "$3" "$4" "$5" | tr '\n' ' ')
	case $(tr '\n' ' ' <"$1") in
	*"${want% }"*) ;;
	*)
		echo "$1 lacks: $want"
		return 1
		;;
	esac
}

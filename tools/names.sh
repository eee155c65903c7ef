#!/bin/sh
# names.sh - every name in back quotes exists: in the documents, and in the
# comments of sources and scripts.
#
# The text between two back quotes counts as:
#
#   a path into the tree        a file, a folder, or a program's source;
#                               <what> and * match any name
#   a file's name               some file has it
#   /gc/heap/live:bytes         a metric, or the beginning of several
#   anything else               each of its words is a word of the sources
#                               outside comments; <what> is left out, and *
#                               or an ellipsis is the rest of a word
#   a.b in anything else        struct a, or a global a, has the member b, or
#                               code has a.b or a->b
#
# Words of other systems are known if they are in a comment that names Go's
# counterpart ("Go: ..."), or in the list below.  The left column of the section
# "What moved" in HACKING.md may have old names.
#
# The same run checks a text with misspelt names, and must find each of them.
#
# usage: [srcdir=DIR] tools/names.sh
set -u
LC_ALL=C
export LC_ALL
top=$(cd "${srcdir:-.}" && pwd) || exit 99
# shellcheck source=test/scripts/verdict.sh
. "$top/test/scripts/verdict.sh"
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
cd "$top" || exit 99

# Names of Check, of the system, and of Go's runtime.
foreign=$(echo "
CK_RUN_CASE CK_FORK
SCHED_FIFO SCHED_RR _Fork clone ldconfig
allocBits allocCache flushGen freeIndexForScan freeindex gcMarkTinyAllocs
heapScan prepareForSweep procresize spanSet" | tr '\n' ' ')

# The files of the tree, without the files that were built in it.
find runtime gc include test bench examples tools doc m4 .ci \
	\( -name '.libs' -o -name '.deps' -o -name '*.build' -o \
	-name '*.unpacked' -o -path 'examples/ports/*/build' \) -prune -o -print >"$dir/tree"
ls -d Makefile.am NEWS README.md HACKING.md SECURITY.md COPYING bootstrap \
	configure.ac rtheap.pc.in .clang-format >>"$dir/tree"

# sources prints the files whose words are known; this file has wrong ones, so
# it is left out.
sources() {
	grep -E '\.([ch]|cc|go|sh|awk|pml|scm|am|ac|in|gp|rows)$|/rt_.*\.m4$' \
		"$dir/tree" | grep -v -e callsite_calls -e '^tools/names.sh$'
	echo bench/cases test/mutants/list .ci/run bootstrap | tr ' ' '\n'
}

# documents prints the documents that people write; programs write doc/peers.
documents() {
	grep -E '(\.md|/README|^NEWS)$' "$dir/tree" | grep -v '^doc/peers/'
}

cat >"$dir/names.awk" <<'PROGRAM'
# usage: awk -f names.awk foreign=... treefile pass=words FILE... pass=names FILE...

BEGIN { ELLIPSIS = "\342\200\246" }

FNR == 1 { begin_file() }
pass == "" { tree[$0]; sub(/.*\//, ""); names[$0]; next }
{
	split_comment()
	if (pass == "words") {
		learn(code)
		learn_members(code)
	} else if (text != "")
		quote(text)
	else
		quote_end()
}
pass == "words" && comment ~ /Go:/ { go = 1 }
pass == "words" && go { learn(comment); go = comment != "" }
END { quote_end(); exit wrong != 0 }

function begin_file() {
	quote_end()
	inside = fenced = moved = indented = blank = go = 0
	depth = 0
	language = "other"
	if (FILENAME ~ /\.([ch]|cc|go|pml)$/)
		language = "c"
	else if (FILENAME ~ /(\.(sh|awk|am|ac|m4|in|gp)|cases|list|run|bootstrap)$/)
		language = "hash"
	else if (FILENAME ~ /(\.md|README|NEWS)$/)
		language = "markdown"
	if (pass == "" && foreign != "")
		learn(foreign)
}

# split_comment sets code, comment and text, which is what a reader of a
# document sees.
function split_comment() {
	code = $0
	comment = ""
	if (language == "c") {
		split_c()
	} else if (language == "hash" && $0 ~ /^[ \t]*#/) {
		code = ""
		comment = $0
		sub(/^[ \t]*#+/, "", comment)
	}
	text = comment
	if (language == "markdown")
		text = markdown($0)
	gsub(/```+[a-z]*/, "", text)
}

function split_c(   i, rest) {
	rest = $0
	code = ""
	while (rest != "") {
		if (inside) {
			i = index(rest, "*/")
			comment = comment (i ? substr(rest, 1, i - 1) : rest)
			rest = i ? substr(rest, i + 2) : ""
			inside = i == 0
		} else if (match(rest, /\/[*\/]/)) {
			code = code substr(rest, 1, RSTART - 1)
			inside = substr(rest, RSTART, 2) == "/*"
			rest = substr(rest, RSTART + 2)
			if (!inside) {
				comment = rest
				rest = ""
			}
		} else {
			code = code rest
			rest = ""
		}
	}
	sub(/^[ \t]*\*?/, "", comment)
}

# markdown returns a line without code blocks, and without the old names.
function markdown(line) {
	if (line ~ /^```/)
		fenced = !fenced
	if (line ~ /^## /)
		moved = line == "## What moved"
	indented = line ~ /^(    |\t)/ && (indented || blank)
	blank = line == ""
	if (fenced || indented)
		return ""
	if (moved)
		sub(/^\|[^|]*\|/, "", line)
	return line
}

function learn(s,   n, i, word) {
	gsub(/[^A-Za-z0-9_]+/, " ", s)
	n = split(s, word, " ")
	for (i = 1; i <= n; i++)
		known[word[i]]
}

# ---- members ----

# learn_members learns the pairs a.b that code has, and the members of structs.
function learn_members(s,   rest, n, word) {
	rest = s
	gsub(/->/, ".", rest)
	while (match(rest, /[A-Za-z0-9_]+\.[A-Za-z_][A-Za-z0-9_]*/)) {
		split(substr(rest, RSTART, RLENGTH), word, ".")
		members[word[1], word[2]]
		rest = substr(rest, RSTART + index(substr(rest, RSTART), "."))
	}
	if (language != "c")
		return
	if (match(s, /^RT_GLOBAL [^;]*;/)) {
		n = split(substr(s, 1, RLENGTH - 1), word, " ")
		type[word[n]] = word[n - 1]
	}
	if (s ~ /^(static |typedef )?struct.*\{$/) {
		n = split(s, word, " ")
		owner = word[n - 1] == "struct" ? "struct" : word[n - 1]
		depth = 1
		nfields = 0
	} else if (depth > 0)
		learn_fields(s)
}

# learn_fields learns from a line of a struct; the last one may have the name of
# a variable.
function learn_fields(s,   i, word) {
	if (s ~ /^[ \t]*\}/ && --depth == 0) {
		gsub(/^\} *|[ ;=].*/, "", s)
		for (i = 1; i <= nfields; i++) {
			members[owner, field[i]]
			if (s != "")
				members[s, field[i]]
		}
		return
	}
	if (s ~ /\{$/)
		depth++
	while (match(s, /[A-Za-z_][A-Za-z0-9_]*[;,:)[]/)) {
		field[++nfields] = substr(s, RSTART, RLENGTH - 1)
		s = substr(s, RSTART + RLENGTH)
	}
}

# pairs tells whether each a.b in a quotation is the member of something.
function pairs(s,   n, i, word) {
	gsub(/->/, ".", s)
	while (match(s, /[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)+/)) {
		n = split(substr(s, RSTART, RLENGTH), word, ".")
		for (i = 1; i < n; i++)
			if (!((word[i], word[i + 1]) in members) &&
			    !(word[i] in type &&
			    (type[word[i]], word[i + 1]) in members))
				return 0
		s = substr(s, RSTART + RLENGTH)
	}
	return 1
}

# ---- back quotes ----

# quote checks the quotations in a line; a quotation may end in the next line.
function quote(s,   i) {
	if (language == "markdown" && s ~ /^(\||#|- )/)
		quote_end()
	if (open != "")
		s = open " " s
	open = ""
	while ((i = index(s, "`")) != 0) {
		s = substr(s, i + 1)
		if ((i = index(s, "`")) == 0) {
			open = "`" s
			where = FILENAME ":" FNR
			return
		}
		judge(substr(s, 1, i - 1))
		s = substr(s, i + 1)
	}
}

function quote_end() {
	if (open != "")
		complain(substr(open, 2) " (no end)")
	open = ""
}

function complain(what) {
	wrong++
	print where ": " what
}

function judge(s) {
	where = FILENAME ":" FNR
	if (s ~ /^\/[a-z]/)
		exists = metric(s)
	else if (s ~ /^(runtime|gc|include|rt|test|bench|examples|tools|doc|m4|\.ci)\/[^ ]*$/)
		exists = path(s)
	else if (s ~ /^[A-Za-z0-9_*-]+\.(c|h|sh|awk|pml|go|md|am|ac)$/)
		exists = file(s)
	else
		exists = s in tree || words(s) && pairs(s)
	if (!exists)
		complain(s)
}

function pattern(s) {
	gsub(/\./, "\\.", s)
	gsub(/<[a-z]*>|\*/, "[^/]*", s)
	return s
}

function path(s,   p, f) {
	sub(/\/$/, "", s)
	sub(/^rt\//, "include/rt/", s)
	sub(/\.log$/, "", s)
	if (s ~ /\.(build|unpacked)/)
		return 1
	if (s in tree || s ".c" in tree || s ".sh" in tree)
		return 1
	p = "^" pattern(s) "$"
	if (s ~ /[<*]/)
		for (f in tree)
			if (f ~ p)
				return 1
	return 0
}

function file(s,   p, f) {
	if (s ~ /^bench-/ || s in names)
		return 1
	p = "^" pattern(s) "$"
	if (s ~ /\*/)
		for (f in names)
			if (f ~ p)
				return 1
	return 0
}

# metric checks the name of a metric; gc/stats/metrics.c has all names.
function metric(s,   line, found) {
	while ((getline line < "gc/stats/metrics.c") > 0)
		if (index(line, "\"" s "\"") || index(line, "\"" s "/"))
			found = 1
	close("gc/stats/metrics.c")
	return found
}

function words(s,   n, i, word) {
	gsub(/<[a-z]*>/, " ", s)
	gsub(ELLIPSIS "|\\*", "~", s)
	gsub(/[^A-Za-z0-9_~]+/, " ", s)
	n = split(s, word, " ")
	for (i = 1; i <= n; i++)
		if (!known_word(word[i]))
			return 0
	return 1
}

function known_word(w,   part, k) {
	if (w ~ /^[0-9~]*$/ || w in known)
		return 1
	if (w !~ /~/)
		return 0
	part = w
	sub(/^~/, "", part)
	sub(/~$/, "$", part)
	part = w ~ /^~/ ? part "$" : "^" substr(part, 1, length(part) - 1)
	for (k in known)
		if (k ~ part)
			return 1
	return 0
}
PROGRAM

# The names that the check must find, one on a line.
cat >"$dir/wrong.md" <<'WRONG'
`rt_aloc`
`procs.frist`
`procs->nextp`
`call rt_config.heap_live`
`mcache.lock.first`
`mcahce_...`
`gc/mark/gray.h`
`test/fuzz/fuz_<what>.c`
`pagaloc.c`
`/gc/heap/life:bytes`
`make chekc`
the call of `rt_alloc` and then `rt_loc`,
| `rt_init` | `a quotation
without
`an_end_or_a_name`
WRONG
cat >"$dir/wrong.c" <<'WRONG'
// of `counts`, and of `mcache_flsh`
int rt_alloc; /* the
	       * second `line_of_a_comment` */
WRONG
sed -i "s/\.\.\.\`/$(printf '\342\200\246')\`/" "$dir/wrong.md"
cat >"$dir/NEWS" <<'WRONG'
- `rt_gone` is new.
WRONG

# shellcheck disable=SC2046 # lists of files without blanks
${AWK:-awk} -f "$dir/names.awk" foreign="$foreign" "$dir/tree" \
	pass=words $(sources) pass=names $(documents) $(sources) \
	"$dir/wrong.md" "$dir/NEWS" "$dir/wrong.c" >"$dir/found"
! grep -v "^$dir/" "$dir/found"
verdict $? "every name in back quotes exists"
[ "$(grep -c "^$dir/wrong.md" "$dir/found")" = 14 ] &&
	grep -q "^$dir/NEWS" "$dir/found"
verdict $? "misspelt names are found in documents"
[ "$(grep -c "^$dir/wrong.c" "$dir/found")" = 2 ]
verdict $? "misspelt names are found in comments"
verdict_sum

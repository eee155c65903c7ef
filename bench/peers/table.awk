# table.awk - the figures of bench/peers.sh: medians, ratios, aims.
#
# usage: awk -f table.awk -v mode=MODE -v heaps="A B ..." cases peers.tsv
#
# mode aims: a line a case, rtheap beside the best others, in Markdown; the peak
#   MiB in brackets.
# mode all: every heap's median, spread, CPU time and peak memory.
# mode plot: medians of the cases that match -v rows=REGEXP, heaps in columns;
#   the row's name is the title less what matches -v cut=REGEXP.
#
# Exits with 1 when a run failed or two heaps differ in the checksum of a case.

# number is x with three digits, or all before the point.
function number(x)
{
	if (x >= 99.95)
		return sprintf("%.0f", x)
	return sprintf(x >= 9.995 ? "%.1f" : x >= 0.9995 ? "%.2f" : "%.3f", x)
}

# sorted_into sorts the n values of key into v[1..n].
function sorted_into(v, store, key, n, i, k, x)
{
	for (i = 1; i <= n; i++) {
		x = store[key, i]
		for (k = i - 1; k >= 1 && v[k] > x; k--)
			v[k + 1] = v[k]
		v[k + 1] = x
	}
}

function median(store, key, n, v)
{
	n = runs[key]
	sorted_into(v, store, key, n)
	return n % 2 ? v[(n + 1) / 2] : (v[n / 2] + v[n / 2 + 1]) / 2
}

# spread is half the range, in percent of the median.
function spread(key, n, v)
{
	n = runs[key]
	sorted_into(v, value, key, n)
	return 50 * (v[n] - v[1]) / median(value, key)
}

function explicit(heap)
{
	return heap == "glibc" || heap == "mimalloc" || heap == "jemalloc"
}

# best is the peer of a kind with the best median, or "".
function best(c, free, i, heap, m, found, least)
{
	found = ""
	for (i = 1; i <= nheaps; i++) {
		heap = heap_name[i]
		if (heap == "rtheap" || explicit(heap) != free || !runs[c, heap])
			continue
		m = median(value, c SUBSEP heap)
		if (better[c] == "more")
			m = -m
		if (found == "" || m < least) {
			found = heap
			least = m
		}
	}
	return found
}

# cell is a heap's figure, and the peak MiB.
function cell(c, heap)
{
	return number(median(value, c SUBSEP heap)) \
		sprintf(" (%.0f)", median(peak, c SUBSEP heap))
}

# ratio_text is what rtheap needs of what tuned Boehm does: time for the same
# work, or memory where that is the value; then CPU time.
function ratio_text(c, mine, other, ratio)
{
	mine = c SUBSEP "rtheap"
	other = c SUBSEP "boehm-tuned"
	if (!runs[other])
		return "-"
	ratio = median(value, mine) / median(value, other)
	if (better[c] == "more")
		ratio = 1 / ratio
	return number(ratio) " " number(median(cpu, mine) / median(cpu, other))
}

function best_cell(c, free, heap)
{
	heap = best(c, free)
	if (heap == "")
		return "-"
	return cell(c, heap) " " heap
}

# An aim is split into: memory or value, more or less, factor, whose.
function aim_split(aim, part, at)
{
	part["mib"] = sub(/^mib/, "", aim)
	part["more"] = aim ~ /^>=/
	sub(/^[<>]=/, "", aim)
	at = index(aim, "*")
	part["factor"] = at ? substr(aim, 1, at - 1) : aim
	part["whose"] = at ? substr(aim, at + 1) : ""
}

function aim_text(part, text)
{
	text = (part["more"] ? ">= " : "<= ") part["factor"]
	if (part["whose"] != "")
		text = text " x " (part["whose"] ~ /^@/ ? "1 thread" : \
			part["whose"])
	if (part["mib"])
		text = text (part["whose"] == "" ? " MiB" : " in MiB")
	return text
}

# aim_reached is "yes", "no", or "?" when the other figure is missing.
function aim_reached(c, part, key, bound, mine)
{
	bound = part["factor"] + 0
	if (part["whose"] ~ /^@/)
		key = substr(part["whose"], 2) SUBSEP "rtheap"
	else
		key = c SUBSEP part["whose"]
	if (part["whose"] != "") {
		if (!runs[key])
			return "?"
		bound *= part["mib"] ? median(peak, key) : median(value, key)
	}
	key = c SUBSEP "rtheap"
	mine = part["mib"] ? median(peak, key) : median(value, key)
	if (part["more"])
		return mine >= bound ? "yes" : "no"
	return mine <= bound ? "yes" : "no"
}

function aims_line(c, n, i, aim, part, text, reached)
{
	n = split(aims[c], aim, " ")
	for (i = 1; i <= n && aims[c] != "-"; i++) {
		aim_split(aim[i], part)
		text = text (i > 1 ? ", " : "") aim_text(part)
		reached = reached (i > 1 ? ", " : "") aim_reached(c, part)
	}
	printf "| %s, %s | %s | %s | %s | %s | %s | %s |\n", title[c],
		unit[c], best_cell(c, 0), best_cell(c, 1),
		cell(c, "rtheap"), ratio_text(c),
		text == "" ? "-" : text, reached == "" ? "-" : reached
}

function all_line(c, i, key)
{
	printf "| %s, %s |", title[c], unit[c]
	for (i = 1; i <= nheaps; i++) {
		key = c SUBSEP heap_name[i]
		if (runs[key])
			printf " %s ±%.0f%% %.2fs %.0fM |",
				number(median(value, key)), spread(key),
				median(cpu, key), median(peak, key)
		else
			printf " - |"
	}
	printf "\n"
}

function plot_line(c, i, key, name)
{
	name = title[c]
	gsub(cut, "", name)
	printf "\"%s\"", name
	for (i = 1; i <= nheaps; i++) {
		key = c SUBSEP heap_name[i]
		printf "\t%s", runs[key] ? median(value, key) : "?"
	}
	printf "\n"
}

function heading(i)
{
	if (mode == "aims") {
		print "| workload | best collector | best malloc and free |" \
			" rtheap | of tuned Boehm's, and CPU | aim |" \
			" reached |"
		print "| --- | ---: | ---: | ---: | ---: | --- | --- |"
		return
	}
	printf mode == "all" ? "| workload |" : "\"\""
	for (i = 1; i <= nheaps; i++)
		printf mode == "all" ? " %s |" : "\t\"%s\"", heap_name[i]
	printf "\n"
	if (mode != "all")
		return
	printf "| --- |"
	for (i = 1; i <= nheaps; i++)
		printf " ---: |"
	printf "\n"
}

BEGIN {
	FS = "\t"
	nheaps = split(heaps, heap_name, " ")
}

/^#/ {
	next
}

# The first file: cases.
FNR == NR {
	case_name[++ncases] = $1
	better[$1] = $4
	aims[$1] = $5
	title[$1] = $6
	next
}

FNR == 1 {
	next # the columns' names
}

$4 == "failed" {
	failed = failed "\n" $1 ", " $2 ": failed"
	next
}

# case heap repetition value unit wall cpu peak others checksum
{
	key = $1 SUBSEP $2
	i = ++runs[key]
	value[key, i] = $4 + 0
	cpu[key, i] = $7 + 0
	peak[key, i] = $8 / 1024
	unit[$1] = $5
	if (!($1 in checksum))
		checksum[$1] = $10
	else if (checksum[$1] != $10)
		failed = failed "\n" $1 ", " $2 ": checksum " $10 ", not " \
			checksum[$1]
	others += $9
	most = $9 + 0 > most ? $9 + 0 : most
	rows_read++
}

END {
	heading()
	for (i = 1; i <= ncases; i++) {
		c = case_name[i]
		if (mode == "aims" && runs[c, "rtheap"])
			aims_line(c)
		else if (mode == "all" && (c in unit))
			all_line(c)
		else if (mode == "plot" && (c in unit) && c ~ rows)
			plot_line(c)
	}
	if (mode == "aims" && rows_read)
		printf "\n%d runs; other processes had %.0f %% of the " \
			"processors, at most %.0f %% in one run.\n",
			rows_read, others / rows_read, most
	if (failed != "") {
		print substr(failed, 2) > "/dev/stderr"
		exit 1
	}
}

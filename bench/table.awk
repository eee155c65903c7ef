# table.awk - the figures of bench/peers.sh: medians, ratios, aims.
#
# usage: awk -f medians.awk -f readme.awk -f table.awk -v mode=MODE
# 	-v heaps="A B ..." -v limit=SECONDS -v place="MACHINE; DATE"
# 	cases peers.tsv
#
# mode cases: a line for each case, below it one for each heap (value, CPU time
#   and peak memory, and rtheap's divided by these) and one for each aim.
# mode missed: the aims that were missed, and how many were reached.
# mode behind: the cases in which another heap is ahead beyond the spread.
# mode figures: tables for each case that has further figures.
# mode readme: the rows that the cases name, and in how many cases others are
#   ahead.
# mode plot: medians of the cases that match -v rows=REGEXP, heaps in columns;
#   the row's name is the title less what matches -v cut=REGEXP.
# mode plot-figures: the figures in the unit -v cut=UNIT of the case that
#   matches -v rows=REGEXP, heaps in columns.
#
# Exits with 1 if a run failed, if two heaps differ in the checksum of a case,
# or if rtheap did not end in time.

# ---- Aims ----

# aim_split sets part[1..4]: what the aim is about (mib, a figure, or "" for the
# value), more or less, a factor, and the heap that it is a factor of.
function aim_split(aim, part, at)
{
	at = match(aim, /[<>]=/)
	part["what"] = substr(aim, 1, at - 1)
	aim = substr(aim, at)
	part["more"] = aim ~ /^>=/
	sub(/^[<>]=/, "", aim)
	at = index(aim, "*")
	part["factor"] = at ? substr(aim, 1, at - 1) : aim
	part["whose"] = at ? substr(aim, at + 1) : ""
}

function aim_text(part, text)
{
	text = (part["more"] ? ">= " : "<= ") part["factor"]
	if (part["whose"] == "gc")
		text = text " x the best collector"
	else if (part["whose"] != "")
		text = text " x " substr(part["whose"], \
			part["whose"] ~ /^@/ ? 2 : 1)
	if (part["what"] == "mib")
		text = text (part["whose"] == "" ? " MiB" : " in MiB")
	else if (part["what"] != "")
		text = figure_text(part["what"], " ") " " text
	return text
}

# aim_value returns the value that an aim is about, or "" if it was not
# measured.
function aim_value(what, key)
{
	if (!runs[key])
		return ""
	if (what == "" || what == "mib")
		return what == "" ? median(value, key) : median(peak, key)
	return (key, what) in figure_runs ? figure_median(key, what) : ""
}

# aim_reached returns "yes", "no", or "?"  if the other figure is missing.
function aim_reached(c, part, key, bound, mine, other)
{
	bound = part["factor"] + 0
	key = part["whose"] ~ /^@/ ? substr(part["whose"], 2) SUBSEP "rtheap" : \
		c SUBSEP (part["whose"] == "gc" ? best(c, 0) : part["whose"])
	other = part["whose"] == "" ? 1 : aim_value(part["what"], key)
	mine = aim_value(part["what"], c SUBSEP "rtheap")
	if (other == "" || mine == "")
		return "?"
	if (part["more"])
		return mine >= bound * other ? "yes" : "no"
	return mine <= bound * other ? "yes" : "no"
}

# aims_read splits the aims of a case into text[1..n], reached[1..n]; returns n.
function aims_read(c, text, reached, n, i, aim, part)
{
	n = aims[c] == "-" ? 0 : split(aims[c], aim, " ")
	for (i = 1; i <= n; i++) {
		aim_split(aim[i], part)
		text[i] = aim_text(part)
		reached[i] = aim_reached(c, part)
	}
	return n
}

# missed_lines prints the case, and below it a line for each missed aim; the
# first has the figures.
function missed_lines(c, n, i, aim, got, cells)
{
	n = aims_read(c, aim, got)
	for (i = 1; i <= n; i++) {
		aims_met[got[i]]++
		if (got[i] != "no")
			continue
		if (cells == "") {
			printf "| %s, %s |  |  |  |  |\n", title[c], unit[c]
			cells = sprintf("%s | ±%.0f%% | %s", cell(c, "rtheap"),
				spread(c SUBSEP "rtheap"), best_cell(c))
		} else
			cells = " |  |  | "
		printf "| aim %s | %s |\n", aim[i], cells
	}
}

# ---- Lines of cases ----

# heap_lines prints what each heap has that ran, or did not end in time.
function heap_lines(c, i, heap, key)
{
	for (i = 1; i <= nheaps; i++) {
		heap = heap_name[i]
		key = c SUBSEP heap
		if (runs[key])
			printf "| %s | %s | %.2f | %.0f | %s |\n",
				heap (heap == best(c, 0) || heap == best(c, 1) ? \
				" (best)" : ""), value_cell(key),
				median(cpu, key), median(peak, key),
				heap != "rtheap" && runs[c, "rtheap"] ? \
				ratios(c, heap) : "-"
		else if (key in late)
			printf "| %s | %s |  |  |  |\n", heap, absent(key)
	}
}

function aim_lines(c, n, i, aim, got, word)
{
	word["yes"] = "reached"
	word["no"] = "missed"
	word["?"] = "not compared"
	n = aims_read(c, aim, got)
	for (i = 1; i <= n; i++)
		printf "| %s: %s |  |  |  |  |\n", word[got[i]], aim[i]
}

function case_lines(c)
{
	printf "| **%s, %s** |  |  |  |  |\n", title[c], unit[c]
	heap_lines(c)
	if (runs[c, "rtheap"])
		aim_lines(c)
}

# value_cell returns the median of a heap's values, and their spread.
function value_cell(key)
{
	return runs[key] ? number(median(value, key)) \
		sprintf(" ±%.0f%%", spread(key)) : absent(key)
}

function figure_cell(key, name)
{
	return (key, name) in figure_runs ? \
		number(figure_median(key, name)) sprintf(" ±%.0f%%", \
		spread_of(figures, key SUBSEP name, figure_runs[key, name])) : \
		absent(key)
}

# column_head and column_cell return what column k of the figures of a case has:
# its values in column 0, then what it measures beside them.
function column_head(c, model, k)
{
	return k ? figure_text(figure_name[model, k], ", ") : unit[c]
}

function column_cell(c, model, k, heap)
{
	return k ? figure_cell(c SUBSEP heap, figure_name[model, k]) : \
		value_cell(c SUBSEP heap)
}

function column_width(c, model, k, i, n, width)
{
	width = length(column_head(c, model, k))
	for (i = 1; i <= nheaps; i++) {
		n = length(column_cell(c, model, k, heap_name[i]))
		width = n > width ? n : width
	}
	return width + 3
}

# columns_print prints a table of the columns from k to last.
function columns_print(c, model, k, last, i, j, key)
{
	printf "\n| heap |"
	for (j = k; j <= last; j++)
		printf " %s |", column_head(c, model, j)
	printf "\n| --- |"
	for (j = k; j <= last; j++)
		printf " ---: |"
	printf "\n"
	for (i = 1; i <= nheaps; i++) {
		key = c SUBSEP heap_name[i]
		if (!runs[key] && !(key in late))
			continue
		printf "| %s |", heap_name[i]
		for (j = k; j <= last; j++)
			printf " %s |", column_cell(c, model, j, heap_name[i])
		printf "\n"
	}
}

# figures_tables prints the figures of a case, in as many tables as lines of 100
# columns need.  The names of heaps take at most 16 of these.
function figures_tables(c, model, k, last, width)
{
	if (!(model = most_figures(c)))
		return
	model = c SUBSEP model
	printf "\n%s:\n", title[c]
	for (k = 0; k <= figure_count[model]; k = last + 1) {
		width = 16 + column_width(c, model, k)
		for (last = k; last < figure_count[model]; last++) {
			width += column_width(c, model, last + 1)
			if (width > 100)
				break
		}
		columns_print(c, model, k, last)
	}
	printf "\n%s\n", folded(caption(c))
}

function figures_plot(c, model, i, k, key, name)
{
	model = c SUBSEP most_figures(c)
	for (k = 1; k <= figure_count[model]; k++) {
		name = figure_name[model, k]
		if (name !~ ("_" cut "$"))
			continue
		printf "\"%s\"", substr(name, 1, index(name, "_") - 1)
		for (i = 1; i <= nheaps; i++) {
			key = c SUBSEP heap_name[i]
			printf "\t%s", (key, name) in figure_runs ? \
				figure_median(key, name) : "?"
		}
		printf "\n"
	}
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
	if (mode == "cases") {
		print "| workload, heaps and aims | value | CPU, s |" \
			" peak, MiB | ratios |"
		print "| --- | ---: | ---: | ---: | ---: |"
		return
	}
	if (mode == "missed") {
		print "| workload, and the aims that it misses |" \
			" rtheap | spread | best collector | ratios |"
		print "| --- | ---: | ---: | ---: | ---: |"
		return
	}
	if (mode == "readme") {
		readme_heading()
		return
	}
	if (mode ~ /^plot/) {
		printf "\"\""
		for (i = 1; i <= nheaps; i++)
			printf "\t\"%s\"", heap_name[i]
		printf "\n"
	}
}

BEGIN {
	FS = "\t"
	nheaps = split(heaps, heap_name, " ")
}

# The first file: cases.
FNR == NR {
	case_name[++ncases] = $1
	better[$1] = $6
	aims[$1] = $7
	title[$1] = $8
	readme[$1] = $9 == "" ? "-" : $9
	next
}

FNR == 1 {
	next # the columns' names
}

$4 == "failed" {
	failed = failed "\n" $1 ", " $2 ": failed"
	next
}

$4 == "timeout" {
	late[$1, $2] = 1
	if ($2 == "rtheap")
		failed = failed "\n" $1 ", rtheap: not done in " limit " s"
	next
}

# case heap repetition value unit wall cpu peak others checksum figures
{
	key = $1 SUBSEP $2
	i = ++runs[key]
	figures_add(key, $11)
	value[key, i] = $4 + 0
	cpu[key, i] = $7 + 0
	peak[key, i] = $8 / 1024
	unit[$1] = $5
	case_runs[$1] = i > case_runs[$1] ? i : case_runs[$1]
	most_runs = i > most_runs ? i : most_runs
	case_rows[$1]++
	case_others[$1] += $9
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
		if (mode == "cases" && (c in unit))
			case_lines(c)
		else if (mode == "missed" && runs[c, "rtheap"])
			missed_lines(c)
		else if (mode == "readme" && (c in unit))
			readme_rows(c)
		else if (mode == "figures" && (c in unit))
			figures_tables(c)
		else if (mode == "plot" && (c in unit) && c ~ rows)
			plot_line(c)
		else if (mode == "plot-figures" && (c in unit) && c ~ rows)
			figures_plot(c)
	}
	if (mode == "missed")
		print "\n" folded("Aims reached: " aims_met["yes"] + 0 \
			", missed: " aims_met["no"] + 0 ".  " caption_all())
	if (mode == "behind")
		behind_print()
	if (mode == "readme") {
		print ""
		behind_short()
	} else if (mode !~ /^(plot|figures|missed)/) {
		printf "\n%s\n", folded(caption_all())
	}
	if (failed != "") {
		print substr(failed, 2) > "/dev/stderr"
		exit 1
	}
}

# table.awk - the figures of bench/peers.sh: medians, ratios, aims.
#
# usage: awk -f medians.awk -f readme.awk -f table.awk -v mode=MODE
# 	-v heaps="A B ..." -v limit=SECONDS -v place="MACHINE; DATE"
# 	cases peers.tsv
#
# mode aims: a line for each case, rtheap beside the best others, in Markdown; the
#   peak MiB in brackets; rtheap's value, CPU time and peak memory, divided by the
#   other's.
# mode missed: the aims that were missed, and how many were reached.
# mode behind: the cases in which another heap is ahead beyond the spread.
# mode all: every heap's median, spread, CPU time and peak memory.
# mode ratios: rtheap's figures divided by those of every other, as above.
# mode figures: a table for each case that has further figures.
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

function aims_line(c, n, i, aim, got, text, reached)
{
	n = aims_read(c, aim, got)
	for (i = 1; i <= n; i++) {
		text = text (i > 1 ? ", " : "") aim[i]
		reached = reached (i > 1 ? ", " : "") got[i]
	}
	printf "| %s, %s | %s | ±%.0f%% | %s | %s | %s | %s |\n", title[c],
		unit[c], cell(c, "rtheap"), spread(c SUBSEP "rtheap"),
		best_cell(c, 0), best_cell(c, 1),
		text == "" ? "-" : text, reached == "" ? "-" : reached
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
				spread(c SUBSEP "rtheap"), best_cell(c, 0))
		} else
			cells = " |  |  | "
		printf "| missed: %s | %s |\n", aim[i], cells
	}
}

# ---- Lines of cases ----

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
			printf " %s |", absent(key)
	}
	printf "\n"
}

function ratios_line(c, i, key)
{
	printf "| %s |", title[c]
	for (i = 1; i <= nheaps; i++) {
		key = c SUBSEP heap_name[i]
		if (heap_name[i] != "rtheap")
			printf " %s |", runs[key] ? ratios(c, heap_name[i]) : \
				absent(key)
	}
	printf "\n"
}

function figure_cell(key, name)
{
	return (key, name) in figure_runs ? \
		number(figure_median(key, name)) sprintf(" ±%.0f%%", \
		spread_of(figures, key SUBSEP name, figure_runs[key, name])) : \
		absent(key)
}

function figures_table(c, model, i, k, key)
{
	if (!(model = most_figures(c)))
		return
	model = c SUBSEP model
	printf "\n%s:\n\n| heap | %s |", title[c], unit[c]
	for (k = 1; k <= figure_count[model]; k++)
		printf " %s |", figure_text(figure_name[model, k], ", ")
	printf "\n| --- | ---: |"
	for (k = 1; k <= figure_count[model]; k++)
		printf " ---: |"
	printf "\n"
	for (i = 1; i <= nheaps; i++) {
		key = c SUBSEP heap_name[i]
		if (!runs[key] && !(key in late))
			continue
		printf "| %s | %s |", heap_name[i],
			runs[key] ? number(median(value, key)) \
			sprintf(" ±%.0f%%", spread(key)) : absent(key)
		for (k = 1; k <= figure_count[model]; k++)
			printf " %s |", figure_cell(key, figure_name[model, k])
		printf "\n"
	}
	printf "\n%s\n", caption(c)
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

# columns_heading names the heaps, from number after + 1 on.
function columns_heading(after, i)
{
	printf "| workload |"
	for (i = after + 1; i <= nheaps; i++)
		printf " %s |", heap_name[i]
	printf "\n| --- |"
	for (i = after + 1; i <= nheaps; i++)
		printf " ---: |"
	printf "\n"
}

function heading(i)
{
	if (mode == "aims") {
		print "| workload | rtheap | spread | best collector | ratios |" \
			" best malloc and free | ratios | aim | reached |"
		print "| --- | ---: | ---: | ---: | ---: | ---: | ---: |" \
			" --- | --- |"
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
		return
	}
	if (mode == "figures" || mode == "behind")
		return
	columns_heading(mode == "ratios")
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
		if (mode == "aims" && runs[c, "rtheap"])
			aims_line(c)
		else if (mode == "missed" && runs[c, "rtheap"])
			missed_lines(c)
		else if (mode == "readme" && (c in unit))
			readme_rows(c)
		else if (mode == "all" && (c in unit))
			all_line(c)
		else if (mode == "ratios" && runs[c, "rtheap"])
			ratios_line(c)
		else if (mode == "figures" && (c in unit))
			figures_table(c)
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
		printf "\n%s\n", caption_all()
	}
	if (failed != "") {
		print substr(failed, 2) > "/dev/stderr"
		exit 1
	}
}

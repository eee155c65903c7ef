# table.awk - the figures of bench/peers.sh: medians, ratios, aims.
#
# usage: awk -f table.awk -v mode=MODE -v heaps="A B ..." -v limit=SECONDS
#	-v place="MACHINE; DATE" cases peers.tsv
#
# mode aims: a line a case, rtheap beside the best others, in Markdown; the peak
#   MiB in brackets; what rtheap has over what the other has: value, CPU time,
#   peak memory.
# mode missed: the aims that were missed, and how many were reached.
# mode behind: the cases in which another heap is ahead beyond the spread.
# mode all: every heap's median, spread, CPU time and peak memory.
# mode ratios: what rtheap has over what every other has, as above.
# mode figures: the further figures of the cases that have some, a table each.
# mode readme: the rows that the cases name, and who is ahead.
# mode plot: medians of the cases that match -v rows=REGEXP, heaps in columns;
#   the row's name is the title less what matches -v cut=REGEXP.
# mode plot-figures: the figures in the unit -v cut=UNIT of the case that
#   matches -v rows=REGEXP, heaps in columns.
#
# A value is inverted in a ratio where more is better, so that below 1 is always
# better for rtheap.  The spread of some runs is half their range.  A ratio that
# differs from 1 by no more than the spreads of both together is "equal".
#
# Exits with 1 when a run failed, two heaps differ in the checksum of a case, or
# rtheap did not end in time.

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

function median_of(store, key, n, v)
{
	sorted_into(v, store, key, n)
	return n % 2 ? v[(n + 1) / 2] : (v[n / 2] + v[n / 2 + 1]) / 2
}

function median(store, key)
{
	return median_of(store, key, runs[key])
}

# spread_of is half the range of n values, in percent of their median.
function spread_of(store, key, n, v, m)
{
	sorted_into(v, store, key, n)
	m = n % 2 ? v[(n + 1) / 2] : (v[n / 2] + v[n / 2 + 1]) / 2
	return m ? 50 * (v[n] - v[1]) / m : 0
}

function spread(key)
{
	return spread_of(value, key, runs[key])
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
		if (heap ~ /^rtheap/ || explicit(heap) != free || !runs[c, heap])
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

# over is what one heap has over what another has: "-" where the clock saw
# nothing, "equal" within the spread.
function over(store, above, below, a, b, s)
{
	a = median(store, above)
	b = median(store, below)
	if (!a || !b)
		return "-"
	s = (spread_of(store, above, runs[above]) + \
		spread_of(store, below, runs[below])) / 100
	if (a / b - 1 <= s && 1 - a / b <= s)
		return "equal"
	return number(a / b)
}

# value_over is rtheap's value over a heap's.
function value_over(c, heap, mine, other)
{
	mine = c SUBSEP "rtheap"
	other = c SUBSEP heap
	return better[c] == "more" ? over(value, other, mine) : \
		over(value, mine, other)
}

# ratios is what rtheap has over what a heap has: value, CPU time, peak MiB.
function ratios(c, heap, mine, other)
{
	mine = c SUBSEP "rtheap"
	other = c SUBSEP heap
	return value_over(c, heap) " " over(cpu, mine, other) " " \
		over(peak, mine, other)
}

function best_cell(c, free, heap)
{
	heap = best(c, free)
	if (heap == "")
		return "- | -"
	return cell(c, heap) " " heap " | " ratios(c, heap)
}

# An aim is split into: of what (mib, a figure, or "" for the value), more or
# less, factor, whose.
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
		text = text " x " (part["whose"] ~ /^@/ ? "1 thread" : \
			part["whose"])
	if (part["what"] == "mib")
		text = text (part["whose"] == "" ? " MiB" : " in MiB")
	else if (part["what"] != "")
		text = figure_text(part["what"], " ") " " text
	return text
}

# aim_value is what an aim is about, "" where it was not measured.
function aim_value(what, key)
{
	if (!runs[key])
		return ""
	if (what == "" || what == "mib")
		return what == "" ? median(value, key) : median(peak, key)
	return (key, what) in figure_runs ? figure_median(key, what) : ""
}

# aim_reached is "yes", "no", or "?" when the other figure is missing.
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

# missed_lines is a line for each aim of the case that was missed.
function missed_lines(c, n, i, aim, got)
{
	n = aims_read(c, aim, got)
	for (i = 1; i <= n; i++) {
		aims_met[got[i]]++
		if (got[i] == "no")
			printf "| %s, %s | %s | ±%.0f%% | %s | %s |\n",
				title[c], unit[c], cell(c, "rtheap"),
				spread(c SUBSEP "rtheap"), best_cell(c, 0), aim[i]
	}
}

# ---- Where a peer is ahead ----

# ahead is "title (Nx HEAP)" of a kind of heap in a case, or "".
function ahead(c, free, heap, r)
{
	heap = best(c, free)
	r = heap == "" ? "-" : value_over(c, heap)
	return r + 0 > 1 ? title[c] " (" r " x " heap ")" : ""
}

# behind_text is the cases in which a kind of heap is ahead of rtheap.
function behind_text(free, i, text, a)
{
	for (i = 1; i <= ncases; i++) {
		a = runs[case_name[i], "rtheap"] ? ahead(case_name[i], free) : ""
		if (a != "")
			text = text (text == "" ? "" : "; ") a
	}
	return text == "" ? "none" : text
}

# folded is text in lines of at most 80 columns.
function folded(text, n, i, word, line, out)
{
	n = split(text, word, " ")
	for (i = 1; i <= n; i++) {
		if (length(line) + 1 + length(word[i]) > 80) {
			out = out line "\n"
			line = word[i]
		} else {
			line = line (line == "" ? "" : " ") word[i]
		}
	}
	return out line
}

# peaks_text compares peak memory with the collector that has the least.
function peaks_text(i, k, c, heap, least, m, mine, r, met, of, worst, where)
{
	for (i = 1; i <= ncases; i++) {
		c = case_name[i]
		least = ""
		for (k = 1; k <= nheaps; k++) {
			heap = heap_name[k]
			if (heap ~ /^rtheap/ || explicit(heap) || !runs[c, heap])
				continue
			m = median(peak, c SUBSEP heap)
			least = least == "" || m < least ? m : least
		}
		if (!least || !runs[c, "rtheap"])
			continue
		mine = median(peak, c SUBSEP "rtheap")
		of++
		met += mine <= least * 1.1
		if (mine / least > worst) {
			worst = mine / least
			where = sprintf("%s (%.0f MiB and %.0f)", title[c],
				mine, least)
		}
	}
	return of ? "Its peak memory is at most 1.1 times the least of any " \
		"other collector in " met " of " of " cases; most it is above " \
		"in: " where "." : ""
}

function behind_print()
{
	print folded("A collector is ahead of rtheap in: " behind_text(0) ".")
	print ""
	print folded("A malloc, which is told when an object dies, is ahead in: " \
		behind_text(1) ".")
	print ""
	print folded(peaks_text())
}

function absent(key)
{
	return key in late ? "> " limit " s" : "-"
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

# ---- Figures: what a program measures beside its value ----

function figure_median(key, name)
{
	return median_of(figures, key SUBSEP name, figure_runs[key, name])
}

# figure_text is a name with its unit apart: "max_us" is "max, us".
function figure_text(name, between)
{
	sub(/_/, between, name)
	return name
}

function figures_add(key, text, n, i, part, field)
{
	n = split(text, field, " ")
	for (i = 1; i <= n; i++) {
		split(field[i], part, "=")
		if (!((key, part[1]) in figure_runs))
			figure_name[key, ++figure_count[key]] = part[1]
		figures[key, part[1], ++figure_runs[key, part[1]]] = part[2] + 0
	}
}

# most_figures is the heap that has the most figures in a case, or "".
function most_figures(c, i, key, found, most)
{
	for (i = 1; i <= nheaps; i++) {
		key = c SUBSEP heap_name[i]
		if (figure_count[key] > most) {
			most = figure_count[key]
			found = heap_name[i]
		}
	}
	return found
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

# ---- The README ----

# row_store copies the values that a row is of to shown[case, heap, row, i].
function row_store(c, figure, row, i, h, k, key, n)
{
	for (i = 1; i <= nheaps; i++) {
		key = c SUBSEP heap_name[i]
		n = figure == "" ? runs[key] : figure_runs[key, figure]
		shown_runs[row, heap_name[i]] = n
		for (k = 1; k <= n; k++)
			shown[row, heap_name[i], k] = figure == "" ? \
				value[key, k] : figures[key, figure, k]
	}
}

function shown_median(row, heap)
{
	return median_of(shown, row SUBSEP heap, shown_runs[row, heap])
}

# is_best says whether no heap of the row is ahead of this one by more than the
# spread.
function is_best(c, figure, row, heap, i, m, other, s)
{
	m = shown_median(row, heap)
	for (i = 1; i <= nheaps; i++) {
		if (!in_readme(heap_name[i]) || !shown_runs[row, heap_name[i]])
			continue
		other = shown_median(row, heap_name[i])
		s = spread_of(shown, row SUBSEP heap, \
			shown_runs[row, heap]) + spread_of(shown, \
			row SUBSEP heap_name[i], shown_runs[row, heap_name[i]])
		if (figure == "" && better[c] == "more" ? \
			other > m * (1 + s / 100) : m > other * (1 + s / 100))
			return 0
	}
	return 1
}

function in_readme(heap)
{
	return heap != "jemalloc" && heap != "glibc"
}

function readme_row(c, text, row, at, figure, i, heap, shows)
{
	at = index(text, "=")
	figure = at ? substr(text, at + 1) : ""
	row_store(c, figure, row)
	printf "| %s |", at ? substr(text, 1, at - 1) : text
	for (i = 1; i <= nheaps; i++) {
		heap = heap_name[i]
		if (!in_readme(heap))
			continue
		shows = ""
		if (shown_runs[row, heap]) {
			shows = number(shown_median(row, heap))
			if (is_best(c, figure, row, heap))
				shows = "**" shows "**"
			if (text ~ /peak MiB/)
				shows = shows sprintf(" (%.0f)", \
					median(peak, c SUBSEP heap))
		}
		printf " %s |", shows
	}
	printf "\n"
}

function readme_rows(c, n, i, text)
{
	n = readme[c] == "-" ? 0 : split(readme[c], text, ";")
	for (i = 1; i <= n; i++)
		readme_row(c, text[i], c SUBSEP i)
}

function readme_heading(i)
{
	print folded(place ".  Medians of " most_runs " runs in turn; " \
		"other processes had " others_text() ".  In bold what is ahead, " \
		"or not behind by more than the spread.")
	printf "\n| |"
	for (i = 1; i <= nheaps; i++)
		if (in_readme(heap_name[i]))
			printf " %s |", heap_name[i]
	printf "\n|---|"
	for (i = 1; i <= nheaps; i++)
		if (in_readme(heap_name[i]))
			printf "---:|"
	printf "\n"
}

# ---- What is said below a table ----

function others_text()
{
	return sprintf("%.0f %% of the processors, at most %.0f %% in one run",
		rows_read ? others / rows_read : 0, most)
}

function caption_all()
{
	return sprintf("%s; medians of %d runs in turn (%d in all); other " \
		"processes had %s.", place, most_runs, rows_read, others_text())
}

# caption is of the runs of one case.
function caption(c)
{
	return sprintf("%s; medians of %d runs in turn; other processes had " \
		"%.0f %% of the processors.", place, case_runs[c],
		case_rows[c] ? case_others[c] / case_rows[c] : 0)
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

# ---- Lines of cases ----

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
		print "| workload | rtheap | spread | best collector | ratios |" \
			" best malloc and free | ratios | aim | reached |"
		print "| --- | ---: | ---: | ---: | ---: | ---: | ---: |" \
			" --- | --- |"
		return
	}
	if (mode == "missed") {
		print "| workload | rtheap | spread | best collector |" \
			" ratios | missed aim |"
		print "| --- | ---: | ---: | ---: | ---: | --- |"
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
		printf "\nAims reached: %d, missed: %d.  ", aims_met["yes"],
			aims_met["no"]
	if (mode == "behind")
		behind_print()
	if (mode == "readme") {
		print ""
		behind_print()
	} else if (mode !~ /^(plot|figures)/) {
		printf "%s%s\n", mode == "missed" ? "" : "\n", caption_all()
	}
	if (failed != "") {
		print substr(failed, 2) > "/dev/stderr"
		exit 1
	}
}

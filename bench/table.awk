# table.awk - the figures of bench/peers.sh: medians, ratios, aims.
#
# usage: awk -f table.awk -v mode=MODE -v heaps="A B ..." -v limit=SECONDS
#	cases peers.tsv
#
# mode aims: a line a case, rtheap beside the best others, in Markdown; the peak
#   MiB in brackets; what rtheap has over what the other has: value, CPU time,
#   peak memory.
# mode all: every heap's median, spread, CPU time and peak memory.
# mode ratios: what rtheap has over what every other has, as above.
# mode figures: the further figures of the cases that have some, a table each.
# mode plot: medians of the cases that match -v rows=REGEXP, heaps in columns;
#   the row's name is the title less what matches -v cut=REGEXP.
# mode plot-figures: the figures in the unit -v cut=UNIT of the case that
#   matches -v rows=REGEXP, heaps in columns.
#
# A value is inverted in a ratio where more is better, so that below 1 is always
# better for rtheap.
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

# over is "-" where the clock saw nothing.
function over(above, below)
{
	return above && below ? number(above / below) : "-"
}

function over_heap(store, c, heap)
{
	return over(median(store, c SUBSEP "rtheap"),
		median(store, c SUBSEP heap))
}

# ratios is what rtheap has over what a heap has: value, CPU time, peak MiB.
function ratios(c, heap, r)
{
	r = better[c] == "more" ? over(median(value, c SUBSEP heap),
		median(value, c SUBSEP "rtheap")) : over_heap(value, c, heap)
	return r " " over_heap(cpu, c, heap) " " over_heap(peak, c, heap)
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
	if (part["whose"] != "")
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
		c SUBSEP part["whose"]
	other = part["whose"] == "" ? 1 : aim_value(part["what"], key)
	mine = aim_value(part["what"], c SUBSEP "rtheap")
	if (other == "" || mine == "")
		return "?"
	if (part["more"])
		return mine >= bound * other ? "yes" : "no"
	return mine <= bound * other ? "yes" : "no"
}

function aims_line(c, n, i, aim, part, text, reached)
{
	n = split(aims[c], aim, " ")
	for (i = 1; i <= n && aims[c] != "-"; i++) {
		aim_split(aim[i], part)
		text = text (i > 1 ? ", " : "") aim_text(part)
		reached = reached (i > 1 ? ", " : "") aim_reached(c, part)
	}
	printf "| %s, %s | %s | ±%.0f%% | %s | %s | %s | %s |\n", title[c],
		unit[c], cell(c, "rtheap"), spread(c SUBSEP "rtheap"),
		best_cell(c, 0), best_cell(c, 1),
		text == "" ? "-" : text, reached == "" ? "-" : reached
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
	return (key, name) in figure_runs ? number(figure_median(key, name)) : \
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
			runs[key] ? number(median(value, key)) : absent(key)
		for (k = 1; k <= figure_count[model]; k++)
			printf " %s |", figure_cell(key, figure_name[model, k])
		printf "\n"
	}
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
	if (mode ~ /^plot/) {
		printf "\"\""
		for (i = 1; i <= nheaps; i++)
			printf "\t\"%s\"", heap_name[i]
		printf "\n"
		return
	}
	if (mode == "figures")
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
		else if (mode == "ratios" && runs[c, "rtheap"])
			ratios_line(c)
		else if (mode == "figures" && (c in unit))
			figures_table(c)
		else if (mode == "plot" && (c in unit) && c ~ rows)
			plot_line(c)
		else if (mode == "plot-figures" && (c in unit) && c ~ rows)
			figures_plot(c)
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

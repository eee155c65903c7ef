# plot.gp - pictures of the medians of bench/peers.sh, which names data.
#
# A table has the heaps in columns and "?" where one does not take part.
set datafile separator "\t"
set datafile missing "?"
set terminal svg size 900,420 dynamic background "white" font "sans-serif,12"
set key outside right top Left reverse
set grid ytics lt 1 lw 0.5 lc rgb "#cccccc"
set linetype 1 lc rgb "#c00000" lw 3 pt 7
set linetype 2 lc rgb "#1f77b4" lw 1.5 pt 5
set linetype 3 lc rgb "#7fb2d9" lw 1.5 pt 4
set linetype 4 lc rgb "#2ca02c" lw 1.5 pt 9
set linetype 5 lc rgb "#777777" lw 1.5 pt 2 dt 2
set linetype 6 lc rgb "#999999" lw 1.5 pt 1 dt 3
set linetype 7 lc rgb "#bbbbbb" lw 1.5 pt 3 dt 4
set linetype 8 lc rgb "#9467bd" lw 1.5 pt 8

set output "bench-peers-alloc.svg"
set multiplot layout 1,2
set logscale xy
set xlabel "bytes"
set xtics (8, 16, 64, 256, "1 K" 1024, "4 K" 4096, "32 K" 32768)
set ylabel "ns for an allocation, 1 thread"
set title "scanned, zeroed"
set key inside left top
plot for [i = 2:*] data."scan.dat" using 1:i with linespoints lt i - 1 \
	title columnhead(i)
set title "pointer-free"
set ylabel ""
unset key
plot for [i = 2:*] data."noscan.dat" using 1:i with linespoints lt i - 1 \
	title columnhead(i)
unset multiplot

reset
set key outside right top Left reverse
set grid ytics lt 1 lw 0.5 lc rgb "#cccccc"
set style data histograms
set style histogram clustered gap 1
set style fill solid 0.9 noborder

set output "bench-peers-programs.svg"
set ylabel "s"
set yrange [0:*]
plot for [i = 2:*] data."programs.dat" using i:xticlabels(1) \
	lt i - 1 title columnhead(i)

set output "bench-peers-mark.svg"
set ylabel "ns for an object, 256 MB live"
set logscale y
set yrange [1:*]
plot for [i = 2:*] data."mark.dat" using i:xticlabels(1) \
	lt i - 1 title columnhead(i)

set output "bench-peers-latency.svg"
set ylabel "us to replace one of 200 000 messages"
set yrange [0.1:*]
set style data linespoints
plot for [i = 2:*] data."latency.dat" using i:xticlabels(1) \
	lt i - 1 title columnhead(i)

set output "bench-peers-drop.svg"
set ylabel "MiB resident, 9 of 10 objects dropped"
unset logscale
set yrange [0:*]
set style data histograms
plot for [i = 2:*] data."drop.dat" using i:xticlabels(1) \
	lt i - 1 title columnhead(i)

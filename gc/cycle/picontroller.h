// picontroller.h - a controller that keeps an input near a set point.
//
// Go: piController (mgcscavenge.go).
//
// This is pure arithmetic.  The error is the distance of the input from the set
// point.  The output follows the error and the sum of all errors so far (the
// integral).  While the output is at a bound, the integral falls back toward
// the value that just gives the bound.  Otherwise a long time at a bound would
// have to be made up for afterwards (windup).
#ifndef GC_CYCLE_PICONTROLLER_H
#define GC_CYCLE_PICONTROLLER_H

#include "runtime/base/base.h"

// There is no check function: one thread owns it, and any finite numbers are
// possible.
struct picontroller {
	double gain;	    // of the error
	double integral_ns; // time in which the integral gains as much
	double reset_ns;    // time in which windup is undone
	double least, most; // bounds of the output
	double integral;
};

// picontroller_next takes the error of a period, sets *output, and returns
// true.  If a result is infinite or not a number, it forgets the past, sets
// *output to the least, and returns false.
bool picontroller_next(struct picontroller *c, double error, double period_ns,
		       double *output);

#endif

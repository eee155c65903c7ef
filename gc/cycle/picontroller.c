// picontroller.c - one step of the controller.
#include "gc/cycle/picontroller.h"

#include <math.h>

static bool start_over(struct picontroller *c, double *output)
{
	c->integral = 0;
	*output = c->least;
	return false;
}

bool picontroller_next(struct picontroller *c, double error, double period_ns,
		       double *output)
{
	double raw = c->gain * error + c->integral;
	double out = raw;

	if (!isfinite(raw))
		return start_over(c, output);
	if (out < c->least)
		out = c->least;
	if (out > c->most)
		out = c->most;
	c->integral += c->gain * period_ns / c->integral_ns * error +
		       period_ns / c->reset_ns * (out - raw);
	if (!isfinite(c->integral))
		return start_over(c, output);
	*output = out;
	return true;
}

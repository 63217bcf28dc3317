// Records to and from JSON, names exactly as in the agreed files. Numbers are finite or null, 64-bit integers
// beyond 2^53 are strings, fields this build does not know are kept in `unknown` and written again.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "harness/record/clocks.h"
#include "harness/record/leg.h"
#include "harness/record/result.h"

namespace warmleg::record {

// T: any record struct (Result, Leg, Process, Environment, Workload, ClockWindow, Counters, Times, Provider,
// Reason, Metric, ...). Numbers that are not finite become null; in a Result each one also adds a
// `not_finite` warning that names its path.
template <class T>
Json ToJson(const T& record);

// Throws vt::InputError with every defect found (missing field, wrong type, unknown code), each with its
// path. `what` names the document in messages.
template <class T>
T FromJson(const Json& json, std::string_view what);

// "fields" object of `warmleg clocks --json` and of a line of the samples file: {"sclk_mhz": {"value",
// "source"} |
// {"value": null, "reason", "source"}, ...}.
Json FieldsToJson(const ClockSample& sample);
ClockSample SampleFromFields(const Json& fields, std::string_view what);

// Strict parse of a whole document: duplicate keys, NaN, Infinity, numbers beyond a double, text after the
// end and cut files are refused with their line (vt::InputError). A UTF-8 byte order mark at the start is
// accepted and dropped. `comments` allows // and /* */.
Json ParseStrict(std::string_view text, std::string_view what, bool comments = false, int64_t first_line = 1);

// Two-space indented text that ends in a newline; the same bytes under any locale.
std::string Dump(const Json& json);

}  // namespace warmleg::record

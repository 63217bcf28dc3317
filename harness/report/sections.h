// The parts of a campaign's page, one function each; also used inside a comparison.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/report/page.h"
#include "harness/report/report.h"

namespace warmleg::report {

Html CampaignHeader(const Document& document);  // verdict and headline numbers
std::vector<Section> CampaignSections(const Document& document);

Html LeftOut(const record::Result& result);    // every reason, its legs, what to do
Html LegRates(const Document& document);       // plot and table of all legs
Html BoardOverTime(const Document& document);  // clocks, power, temperature
Html Acceptance(const record::Result& result, const std::string& arm);
Html RoundParts(const record::Result& result, const std::string& arm);
Html Providers(const record::Result& result);

// Each reason with what to do about it; `kind` as below.
Html ReasonNotes(const std::vector<record::Reason>& reasons, std::string_view kind);

// What a verdict means, in a sentence.
std::string_view Meaning(record::Verdict verdict);
std::string_view Kind(record::Verdict verdict);  // "good", "warn", "note", "bad"
std::string_view Kind(judge::Outcome outcome);

// Whether it enters the statistics; files from before the field `counted` say so by their reasons.
bool Counts(const record::Leg& leg);
// Tokens over time whatever the leg's rates say, so that a leg that does not count can still be drawn.
std::optional<double> DecodeRate(const record::Leg& leg);
// "process 1, pair 2, dflash2": processes from 1 as on the screen, pair 0 is the warm-up.
std::string LegName(const record::Leg& leg);
// Codes that keep it out, "why" of a leg; empty for one that counts.
std::vector<const record::Reason*> WhyOut(const record::Leg& leg);

}  // namespace warmleg::report

package chaos

import "testing"

func TestProfilesAreValidPlans(t *testing.T) {
	for _, p := range Profiles() {
		plan := Plan{TailDelay: -1}
		for _, text := range p.Cuts {
			c, err := ParseClause(text)
			if err != nil || c.String() != text {
				t.Errorf("%s: cut %q reads as %s, %v", p.Name, text, c, err)
			}
			plan.Clauses = append(plan.Clauses, c)
		}
		if err := plan.Validate(); err != nil {
			t.Errorf("%s: %v", p.Name, err)
		}
		if p.Models == "" || p.Source == "" || p.Reissue > 0 && p.Backoff == "" {
			t.Errorf("%s is not documented in full", p.Name)
		}
		if got, err := FindProfile(p.Name); err != nil || got.Name != p.Name {
			t.Errorf("FindProfile(%s) = %s, %v", p.Name, got.Name, err)
		}
	}
	if _, err := FindProfile("train"); err == nil {
		t.Error("a profile that is not there is found")
	}
}

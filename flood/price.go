package flood

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/mcpflood/mcpflood/results"
)

// prices reads the price flags; those of --price win over the table's.
func (c Config) prices() (results.Prices, error) {
	p := results.Prices{Currency: c.Currency, PerUnit: map[string]float64{}}
	if c.PriceTable != "" {
		b, err := os.ReadFile(c.PriceTable)
		if err != nil {
			return p, fmt.Errorf("--price-table: %w", err)
		}
		var table struct {
			Currency string             `json:"currency"`
			Prices   map[string]float64 `json:"prices"`
		}
		if err := json.Unmarshal(b, &table); err != nil {
			return p, fmt.Errorf(`--price-table %s: %v: want {"currency": "USD", "prices": {"step": 0.002}}`, c.PriceTable, err)
		}
		if table.Currency != "" {
			p.Currency = table.Currency
		}
		for unit, amount := range table.Prices {
			p.PerUnit[unit] = amount
		}
	}
	return p, AddPrices(&p, c.Prices)
}

// AddPrices reads texts of the form UNIT=AMOUNT into p; they win over what is
// there. It reports every problem at once.
func AddPrices(p *results.Prices, texts []string) error {
	if p.PerUnit == nil {
		p.PerUnit = map[string]float64{}
	}
	var errs []error
	for _, kv := range texts {
		unit, text, ok := strings.Cut(kv, "=")
		amount, err := strconv.ParseFloat(text, 64)
		if !ok || err != nil || unit == "" {
			errs = append(errs, fmt.Errorf("bad --price %q: want UNIT=AMOUNT, for example step=0.002", kv))
			continue
		}
		p.PerUnit[unit] = amount
	}
	for _, unit := range slices.Sorted(maps.Keys(p.PerUnit)) {
		if amount := p.PerUnit[unit]; amount < 0 || math.IsNaN(amount) || math.IsInf(amount, 0) {
			errs = append(errs, fmt.Errorf("price of %s is %v: want 0 or more", unit, amount))
		}
	}
	return errors.Join(errs...)
}

// secrets are the texts that must never be kept.
func (c Config) secrets() []string {
	var out []string
	if c.Bearer != "" {
		out = append(out, c.Bearer)
	}
	for _, f := range authHeaders(Config{Headers: c.Headers}) {
		if !secretHeader(f.Name) || f.Value == "" {
			continue
		}
		out = append(out, f.Value)
		// Servers log the credentials without their scheme too.
		if _, credentials, ok := strings.Cut(f.Value, " "); ok && strings.HasSuffix(strings.ToLower(f.Name), "authorization") {
			out = append(out, strings.TrimSpace(credentials))
		}
	}
	return out
}

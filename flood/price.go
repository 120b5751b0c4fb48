package flood

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
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
// there.
func AddPrices(p *results.Prices, texts []string) error {
	if p.PerUnit == nil {
		p.PerUnit = map[string]float64{}
	}
	for _, kv := range texts {
		unit, text, ok := strings.Cut(kv, "=")
		amount, err := strconv.ParseFloat(text, 64)
		if !ok || err != nil || unit == "" {
			return fmt.Errorf("bad --price %q: want UNIT=AMOUNT, for example step=0.002", kv)
		}
		p.PerUnit[unit] = amount
	}
	for unit, amount := range p.PerUnit {
		if amount < 0 || math.IsNaN(amount) || math.IsInf(amount, 0) {
			return fmt.Errorf("price of %s is %v: want 0 or more", unit, amount)
		}
	}
	return nil
}

// secrets are the texts that must never be kept.
func (c Config) secrets() []string {
	var out []string
	if c.Bearer != "" {
		out = append(out, c.Bearer)
	}
	for _, h := range c.Headers {
		if _, v, _ := strings.Cut(h, ":"); secretHeader(headerName(h)) && strings.TrimSpace(v) != "" {
			out = append(out, strings.TrimSpace(v))
		}
	}
	return out
}

// Package local answers questions without a network: arithmetic and equations, units, the time elsewhere, distances between cities, and facts of a
// small file. It speaks English. What changes from day to day (currencies, flights, sports, shares) it does not know, and says so.
package local

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"

	"kennel/infra/zones"
	"kennel/speech/knowledge"
)

// Source is the source of these answers.
const Source = "local"

// The subjects of answers (VEC-NLP-06).
const (
	Equation   = "equation"
	Units      = "unit conversion"
	Timezone   = "time zone"
	Places     = "places"
	General    = "general knowledge"
	People     = "people"
	Nutrition  = "nutrition"
	Definition = "word definition"
)

//go:embed facts.txt
var factFile string

//go:embed cities.txt
var cityFile string

// Provider is a knowledge.Provider. Safe for concurrent use.
type Provider struct {
	now    func() time.Time
	facts  map[string]fact
	cities map[string]city
}

type fact struct{ domain, answer string }

type city struct {
	name, zone string
	lat, lon   float64 // degrees
}

// New returns a provider.
func New(now func() time.Time) *Provider {
	p := &Provider{now: now, facts: map[string]fact{}, cities: map[string]city{}}
	if err := p.read(factFile, cityFile); err != nil {
		panic(err) // the files are part of the program; a test reads them
	}
	return p
}

// relations are facts that many things have: how they are asked for, and the answer.
var relations = map[string]struct {
	domain, answer string
	asked          []string
}{
	"capital":  {Places, "The capital of %s is %s.", []string{"capital of %s", "capital city of %s", "%s capital"}},
	"calories": {Nutrition, "%s: about %s calories.", []string{"how many calories in %s", "calories in %s", "how many calories does %s have"}},
	"define":   {Definition, "%s: %s.", []string{"definition of %s", "define %s", "meaning of %s", "what does %s mean", "%s", "%s definition"}},
	"people":   {People, "%[2]s.", []string{"%s"}},
}

// read reads lines of "relation | thing | value", where relation is one of relations, and of "subject | question; question | answer".
func (p *Provider) read(facts, cities string) error {
	for line := range strings.Lines(facts) {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		f := strings.Split(line, " | ")
		if len(f) != 3 {
			return fmt.Errorf("facts: line %.40q: want three fields", line)
		}
		if r, ok := relations[f[0]]; ok {
			for name := range strings.SplitSeq(f[1], "; ") {
				said, _, _ := strings.Cut(f[1], ";")
				for _, a := range r.asked {
					key := gist(fmt.Sprintf(a, name))
					if _, taken := p.facts[key]; taken {
						return fmt.Errorf("facts: %q given twice", key)
					}
					p.facts[key] = fact{r.domain, fmt.Sprintf(r.answer, capital(said), f[2])}
				}
			}
			continue
		}
		for question := range strings.SplitSeq(f[1], "; ") {
			if _, taken := p.facts[gist(question)]; taken {
				return fmt.Errorf("facts: %q given twice", question)
			}
			p.facts[gist(question)] = fact{f[0], f[2]}
		}
	}
	for line := range strings.Lines(cities) {
		f := strings.Split(strings.TrimSpace(line), " | ")
		if len(f) != 4 {
			return fmt.Errorf("cities: line %.40q: want four fields", line)
		}
		lat, err1 := strconv.ParseFloat(f[1], 64)
		lon, err2 := strconv.ParseFloat(f[2], 64)
		if _, err := time.LoadLocation(f[3]); cmp.Or(err, err1, err2) != nil {
			return fmt.Errorf("cities: line %.40q: %w", line, cmp.Or(err, err1, err2))
		}
		for name := range strings.SplitSeq(f[0], "; ") {
			said, _, _ := strings.Cut(f[0], ";")
			p.cities[plain(name)] = city{said, f[3], lat, lon}
		}
	}
	return nil
}

// Ask implements knowledge.Provider.
func (p *Provider) Ask(_ context.Context, q knowledge.Question) (knowledge.Answer, error) {
	if q.Language != "" && !strings.HasPrefix(strings.ToLower(q.Language), "en") || len(q.Text) > knowledge.MaxQuestion {
		return knowledge.Answer{}, knowledge.ErrNoResult
	}
	text := core(plain(q.Text))
	for _, known := range []func(text, zone string) (spoken, domain string){p.time, p.distance, p.fact, p.units, p.arithmetic} {
		if s, domain := known(text, q.Timezone); s != "" {
			return knowledge.Answer{Spoken: s, Source: Source, Domains: []string{domain}}, nil
		}
	}
	return knowledge.Answer{}, knowledge.ErrNoResult
}

func (p *Provider) arithmetic(text, _ string) (string, string) {
	for _, before := range []string{"solve for x ", "solve ", "calculate ", "compute ", "x if ", "y if ", "the value of ", "the sum of ", "the result of "} {
		text = strings.TrimPrefix(text, before)
	}
	text = strings.TrimSuffix(strings.TrimSuffix(text, " for x"), " equals")
	said, err := calculate(text)
	if err == errZero {
		return "Nothing can be divided by zero.", Equation
	}
	if err != nil {
		return "", ""
	}
	if strings.Contains(said, "=") || strings.HasPrefix(said, "every") || strings.HasPrefix(said, "no ") {
		return capital(said) + ".", Equation
	}
	return "The answer is " + said + ".", Equation
}

func (p *Provider) units(text, _ string) (string, string) {
	s, ok := convert(text)
	if !ok {
		return "", ""
	}
	return capital(s) + ".", Units
}

func (p *Provider) fact(text, _ string) (string, string) {
	f := p.facts[gist(text)]
	return f.answer, f.domain
}

// time answers "time is it in Tokyo", and "time difference between Tokyo and Paris".
func (p *Provider) time(text, zone string) (string, string) {
	if rest, ok := strings.CutPrefix(strings.TrimPrefix(text, "the "), "time difference between "); ok {
		a, b, ok := strings.Cut(rest, " and ")
		from, okA := p.zone(a)
		to, okB := p.zone(b)
		if !ok || !okA || !okB {
			return "", ""
		}
		_, x := p.now().In(from.at).Zone()
		_, y := p.now().In(to.at).Zone()
		switch h := float64(y-x) / 3600; {
		case h == 0:
			return fmt.Sprintf("%s and %s have the same time.", from.name, to.name), Timezone
		case h > 0:
			return fmt.Sprintf("%s is %v hours ahead of %s.", to.name, h, from.name), Timezone
		default:
			return fmt.Sprintf("%s is %v hours behind %s.", to.name, -h, from.name), Timezone
		}
	}
	for _, asked := range []string{"time is it in ", "the time in ", "time in ", "the current time in ", "current time in ", "the local time in ", "time is it right now in ", "time is it now in "} {
		if rest, ok := strings.CutPrefix(text, asked); ok {
			w, ok := p.zone(strings.TrimSuffix(strings.TrimSuffix(rest, " right now"), " now"))
			if !ok {
				return "", ""
			}
			t, here := p.now().In(w.at), p.now().UTC()
			if home, err := time.LoadLocation(zone); err == nil {
				here = p.now().In(home)
			}
			day := ""
			if t.YearDay() != here.YearDay() {
				day = " on " + t.Weekday().String()
			}
			return fmt.Sprintf("In %s it is %s%s.", w.name, t.Format("3:04 PM"), day), Timezone
		}
	}
	return "", ""
}

type where struct {
	name string
	at   *time.Location
}

// zone finds a city or a country that has one time.
func (p *Provider) zone(name string) (where, bool) {
	name = strings.TrimPrefix(name, "the ")
	if c, ok := p.cities[name]; ok {
		at, err := time.LoadLocation(c.zone)
		return where{c.name, at}, err == nil
	}
	id, err := zones.Find(name)
	if err != nil {
		return where{}, false
	}
	at, err := time.LoadLocation(id)
	return where{title(name), at}, err == nil
}

// distance answers "the distance between London and New York" and "how far is it from London to New York".
func (p *Provider) distance(text, _ string) (string, string) {
	for _, form := range [][2]string{{"the distance between ", " and "}, {"distance between ", " and "}, {"the distance from ", " to "}, {"distance from ", " to "}, {"how far is it from ", " to "}, {"how far is ", " from "}} {
		rest, ok := strings.CutPrefix(text, form[0])
		if !ok {
			continue
		}
		a, b, _ := strings.Cut(rest, form[1])
		from, okA := p.cities[a]
		to, okB := p.cities[b]
		if okA && okB {
			km := apart(from, to)
			return fmt.Sprintf("From %s to %s it is about %.0f kilometres, or %.0f miles, as the crow flies.", from.name, to.name, math.Round(km/10)*10, math.Round(km/16.09344)*10), Places
		}
	}
	return "", ""
}

// apart returns the length of the great circle between two cities in kilometres.
func apart(a, b city) float64 {
	const radius, degree = 6371, math.Pi / 180
	dlat, dlon := (b.lat-a.lat)*degree/2, (b.lon-a.lon)*degree/2
	h := math.Pow(math.Sin(dlat), 2) + math.Cos(a.lat*degree)*math.Cos(b.lat*degree)*math.Pow(math.Sin(dlon), 2)
	return 2 * radius * math.Asin(math.Sqrt(h))
}

// plain is text in lower case with single blanks, without what is not spoken.
func plain(s string) string {
	s = strings.NewReplacer("’", "'", "?", " ", "!", " ", "\"", " ", ";", " ").Replace(strings.ToLower(s))
	s = strings.TrimRight(strings.Join(strings.Fields(s), " "), ". ")
	s = strings.NewReplacer("what's", "what is", "who's", "who is", "where's", "where is").Replace(s)
	return strings.ReplaceAll(s, ", ", " ")
}

// core is a question without the words that only ask.
func core(s string) string {
	for {
		before := s
		for _, w := range []string{"please ", "can you ", "could you ", "tell me ", "do you know ", "what is ", "what are ", "what ", "who is ", "who was ", "where is ", "how much is ", "how much are "} {
			s = strings.TrimPrefix(s, w)
		}
		if s == before {
			return strings.TrimSuffix(s, " please")
		}
	}
}

// idle are the words that do not change what a question asks.
var idle = map[string]bool{"the": true, "a": true, "an": true, "is": true, "are": true, "there": true, "what": true, "who": true, "was": true, "were": true, "in": true, "on": true, "of": true, "world": true, "do": true, "does": true, "did": true, "it": true}

// gist returns the words of a question without idle ones. A question of idle words alone is kept.
func gist(s string) string {
	var out []string
	for w := range strings.FieldsSeq(core(plain(s))) {
		if !idle[w] {
			out = append(out, w)
		}
	}
	if len(out) == 0 {
		return s
	}
	return strings.Join(out, " ")
}

func capital(s string) string {
	r := []rune(s)
	if len(r) > 0 {
		r[0] = unicode.ToUpper(r[0])
	}
	return string(r)
}

func title(s string) string {
	words := strings.Fields(s)
	for i, w := range words {
		words[i] = capital(w)
	}
	return strings.Join(words, " ")
}

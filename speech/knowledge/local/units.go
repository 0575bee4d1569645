package local

import (
	"math"
	"strings"
)

// unit is a way to measure something: value in the base unit of its kind = n*factor + offset.
type unit struct {
	kind           string
	one, many      string
	factor, offset float64
	usual          []string // in which "how fast is a knot" is answered
}

// units by every name that people have for them.
var units = func() map[string]*unit {
	out := map[string]*unit{}
	add := func(kind string, factor, offset float64, usual, names string) {
		all := strings.Split(names, ",")
		u := &unit{kind, all[0], all[1], factor, offset, strings.Split(usual, ",")}
		for _, n := range all {
			out[n] = u
		}
	}
	add("length", 1, 0, "foot", "metre,metres,meter,meters,m")
	add("length", 1000, 0, "mile", "kilometre,kilometres,kilometer,kilometers,km")
	add("length", 0.01, 0, "inch", "centimetre,centimetres,centimeter,centimeters,cm")
	add("length", 0.001, 0, "inch", "millimetre,millimetres,millimeter,millimeters,mm")
	add("length", 0.0254, 0, "centimetre", "inch,inches")
	add("length", 0.3048, 0, "metre", "foot,feet,ft")
	add("length", 0.9144, 0, "metre", "yard,yards")
	add("length", 1609.344, 0, "kilometre", "mile,miles")
	add("length", 1852, 0, "kilometre,mile", "nautical mile,nautical miles")
	add("length", 9.4607304725808e15, 0, "kilometre", "light year,light years")
	add("mass", 1, 0, "pound", "kilogram,kilograms,kilo,kilos,kg")
	add("mass", 0.001, 0, "ounce", "gram,grams,g")
	add("mass", 1000, 0, "pound", "tonne,tonnes,metric ton,metric tons")
	add("mass", 0.45359237, 0, "kilogram", "pound,pounds,lb,lbs")
	add("mass", 0.028349523125, 0, "gram", "ounce,ounces,oz")
	add("mass", 6.35029318, 0, "kilogram,pound", "stone,stones")
	add("mass", 907.18474, 0, "kilogram,pound", "ton,tons")
	add("speed", 1, 0, "kilometre per hour", "metre per second,metres per second,meters per second")
	add("speed", 1/3.6, 0, "mile per hour", "kilometre per hour,kilometres per hour,kilometers per hour,km per hour")
	add("speed", 0.44704, 0, "kilometre per hour", "mile per hour,miles per hour,mph")
	add("speed", 1852./3600, 0, "mile per hour,kilometre per hour", "knot,knots")
	add("time", 1, 0, "minute", "second,seconds")
	add("time", 60, 0, "second", "minute,minutes")
	add("time", 3600, 0, "minute", "hour,hours")
	add("time", 86400, 0, "hour", "day,days")
	add("time", 7*86400, 0, "day", "week,weeks")
	add("time", 14*86400, 0, "day", "fortnight,fortnights")
	add("time", 365.25*86400, 0, "day", "year,years")
	add("time", 10*365.25*86400, 0, "year", "decade,decades")
	add("time", 100*365.25*86400, 0, "year", "century,centuries")
	add("volume", 1, 0, "pint", "litre,litres,liter,liters")
	add("volume", 0.001, 0, "teaspoon", "millilitre,millilitres,milliliter,milliliters,ml")
	add("volume", 3.785411784, 0, "litre", "gallon,gallons")
	add("volume", 0.946352946, 0, "litre", "quart,quarts")
	add("volume", 0.473176473, 0, "litre", "pint,pints")
	add("volume", 0.2365882365, 0, "millilitre", "cup,cups")
	add("volume", 0.0295735295625, 0, "millilitre", "fluid ounce,fluid ounces")
	add("volume", 0.01478676478125, 0, "millilitre", "tablespoon,tablespoons")
	add("volume", 0.00492892159375, 0, "millilitre", "teaspoon,teaspoons")
	add("area", 1, 0, "square foot", "square metre,square metres,square meter,square meters")
	add("area", 0.09290304, 0, "square metre", "square foot,square feet")
	add("area", 10000, 0, "acre", "hectare,hectares")
	add("area", 4046.8564224, 0, "square metre", "acre,acres")
	add("area", 1e6, 0, "square mile", "square kilometre,square kilometres,square kilometer,square kilometers")
	add("area", 2589988.110336, 0, "square kilometre", "square mile,square miles")
	add("temperature", 1, 0, "degree Fahrenheit", "degree Celsius,degrees Celsius,celsius,degree celsius,degrees celsius,centigrade,degrees centigrade")
	add("temperature", 5./9, -32*5./9, "degree Celsius", "degree Fahrenheit,degrees Fahrenheit,fahrenheit,degree fahrenheit,degrees fahrenheit")
	add("temperature", 1, -273.15, "degree Celsius", "kelvin,kelvin,kelvins")
	add("data", 1, 0, "bit", "byte,bytes")
	add("data", 1./8, 0, "byte", "bit,bits")
	add("data", 1e3, 0, "byte", "kilobyte,kilobytes")
	add("data", 1e6, 0, "kilobyte", "megabyte,megabytes")
	add("data", 1e9, 0, "megabyte", "gigabyte,gigabytes")
	add("data", 1e12, 0, "gigabyte", "terabyte,terabytes")
	add("energy", 4184, 0, "kilojoule", "calorie,calories,kilocalorie,kilocalories")
	add("energy", 1000, 0, "calorie", "kilojoule,kilojoules")
	add("power", 745.699872, 0, "watt", "horsepower,horsepower")
	add("power", 1, 0, "horsepower", "watt,watts")
	return out
}()

// convert answers "100 fahrenheit in celsius", "5 miles to kilometres", "how many feet are in a mile" and "how fast is a knot".
func convert(q string) (string, bool) {
	if rest, ok := strings.CutPrefix(q, "how many "); ok {
		to, from, ok := cutAny(rest, " are there in ", " are in ", " is in ", " in ", " is ", " are ", " make ")
		if !ok {
			return "", false
		}
		n, u := measure(from)
		return between(n, u, units[to])
	}
	for _, how := range []string{"fast", "long", "far", "heavy", "big", "hot", "much", "large", "high", "tall"} {
		if rest, ok := strings.CutPrefix(q, "how "+how+" is "); ok {
			n, u := measure(rest)
			if u == nil {
				return "", false
			}
			var parts []string
			for _, name := range u.usual {
				parts = append(parts, say(in(n, u, units[name]), units[name]))
			}
			return say(n, u) + verb(n) + strings.Join(parts, ", or "), true
		}
	}
	q = strings.TrimPrefix(q, "convert ")
	from, to, ok := cutAny(q, " in to ", " into ", " to ", " in ")
	if !ok {
		return "", false
	}
	n, u := measure(from)
	return between(n, u, units[to])
}

func between(n float64, from, to *unit) (string, bool) {
	if from == nil || to == nil || from.kind != to.kind {
		return "", false
	}
	return say(n, from) + verb(n) + say(in(n, from, to), to), true
}

func in(n float64, from, to *unit) float64 {
	return (n*from.factor + from.offset - to.offset) / to.factor
}

func verb(n float64) string {
	if n == 1 {
		return " is "
	}
	return " are "
}

// say writes a quantity with at most four digits.
func say(n float64, u *unit) string {
	s, err := spoken(round(n))
	if err != nil {
		s = "very many"
	}
	if s == "1" {
		return "1 " + u.one
	}
	return s + " " + u.many
}

// round keeps four digits, and all of those before the point.
func round(n float64) float64 {
	if n == 0 {
		return 0
	}
	step := math.Pow(10, math.Min(0, math.Floor(math.Log10(math.Abs(n)))-3))
	return math.Round(n/step) * step
}

// measure reads "5 miles", "a mile", "miles" as a number and its unit; nil if it is something else.
func measure(s string) (float64, *unit) {
	for _, article := range []string{"a ", "an ", "one ", "the "} {
		if rest, ok := strings.CutPrefix(s, article); ok && units[rest] != nil {
			return 1, units[rest]
		}
	}
	if u := units[s]; u != nil {
		return 1, u
	}
	words, err := split(s)
	if err != nil || len(words) == 0 {
		return 0, nil
	}
	sign := 1.0
	if words[0] == "-" || words[0] == "minus" {
		sign, words = -1, words[1:]
	}
	if len(words) == 0 {
		return 0, nil
	}
	n, used := number(words)
	if used == 0 {
		return 0, nil
	}
	return sign * n, units[strings.Join(words[used:], " ")]
}

// cutAny cuts at the last of the first separator that is there.
func cutAny(s string, seps ...string) (before, after string, ok bool) {
	for _, sep := range seps {
		if i := strings.LastIndex(s, sep); i > 0 {
			return s[:i], s[i+len(sep):], true
		}
	}
	return "", "", false
}

// Package spokenback measures how well the robot's voice is understood: sentences are spoken plain and in a character, and written down by a recogniser.
package spokenback

import "strings"

// Words returns the words of a sentence as they are compared: lower case, without punctuation.
func Words(sentence string) []string {
	return strings.FieldsFunc(strings.ToLower(sentence), func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '\''
	})
}

// Errors returns how many words of want were heard wrong: the least number of words put in, left out or replaced.
func Errors(want, heard []string) int {
	row := make([]int, len(heard)+1)
	for j := range row {
		row[j] = j
	}
	for i, w := range want {
		corner := row[0]
		row[0] = i + 1
		for j, h := range heard {
			same := corner
			if w != h {
				same++
			}
			corner = row[j+1]
			row[j+1] = min(same, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(heard)]
}

package demo

import (
	"errors"
	"fmt"
	"math/big"
	"regexp"
	"strings"
)

// Limits of the calculator. Its numbers are exact fractions, which without limits could take all memory and time, as in 9^9^9.
const (
	maxExpression = 500    // bytes
	maxPower      = 4096   // of an exponent
	maxBits       = 16_384 // of a numerator or denominator; about 5,000 digits
	maxDepth      = 50     // of parentheses
	maxDecimals   = 12     // after the point, in the answer
)

var (
	errZero = errors.New("division by zero")
	errBig  = errors.New("the numbers get too large for a demo")
)

// step is one operation of a calculation. Both texts are as the answer shows them.
type step struct {
	text   string // such as 3 + 4
	result string
}

// calculate evaluates an expression with numbers, + - * / % ^ and parentheses. It returns the operations in the
// order of evaluation, also if one of them fails. Numbers are fractions of any size up to maxBits, so 0.1 + 0.2
// is exactly 0.3.
func calculate(text string) (*big.Rat, []step, error) {
	if len(text) > maxExpression {
		return nil, nil, errBig
	}
	p := &parser{text: text}
	v, err := p.sum()
	if err == nil && p.peek() != 0 {
		err = fmt.Errorf("%q is not expected", p.peek())
	}
	return v, p.steps, err
}

// parser evaluates an expression while it parses it, by recursive descent: sum, product, sign, power and atom
// are the levels of precedence, from the weakest to the strongest. It isn't used again after an error.
type parser struct {
	text  string
	pos   int
	depth int
	steps []step
}

// peek skips white space and returns the next byte, or 0 at the end. Operators are single bytes, since
// wordOperators has replaced the others.
func (p *parser) peek() byte {
	for p.pos < len(p.text) && (p.text[p.pos] == ' ' || p.text[p.pos] == '\t') {
		p.pos++
	}
	if p.pos == len(p.text) {
		return 0
	}
	return p.text[p.pos]
}

// sum is the weakest level of precedence, and so the start of an expression.
func (p *parser) sum() (*big.Rat, error) { return p.chain("+-", p.product) }

func (p *parser) product() (*big.Rat, error) { return p.chain("*/%", p.sign) }

// chain parses and evaluates operands with operators of the same precedence, from left to right: 8/4/2 is 1. It
// stops at the first error.
func (p *parser) chain(ops string, operand func() (*big.Rat, error)) (*big.Rat, error) {
	v, err := operand()
	for err == nil && p.peek() != 0 && strings.IndexByte(ops, p.peek()) >= 0 {
		op := p.text[p.pos]
		p.pos++
		var w *big.Rat
		if w, err = operand(); err == nil {
			v, err = p.apply(v, op, w)
		}
	}
	return v, err
}

// sign parses an operand with any number of signs before it, such as --3.
func (p *parser) sign() (*big.Rat, error) {
	switch p.peek() {
	case '-', '+':
		op := p.text[p.pos]
		p.pos++
		v, err := p.nested(p.sign)
		if err == nil && op == '-' {
			v.Neg(v)
		}
		return v, err
	}
	return p.power()
}

// power parses and evaluates x^y. It is right associative, so 2^3^2 is 2^9, and has precedence over a sign
// before it: -2^2 is -4. The exponent may have a sign.
func (p *parser) power() (*big.Rat, error) {
	v, err := p.atom()
	if err != nil || p.peek() != '^' {
		return v, err
	}
	p.pos++
	w, err := p.nested(p.sign)
	if err != nil {
		return nil, err
	}
	return p.apply(v, '^', w)
}

// nested parses an operand that is one level deeper, such as the content of parentheses. The limit keeps an expression of many opening
// parentheses from overflowing the goroutine's stack.
func (p *parser) nested(parse func() (*big.Rat, error)) (*big.Rat, error) {
	if p.depth++; p.depth > maxDepth {
		return nil, errBig
	}
	v, err := parse()
	p.depth--
	return v, err
}

// number matches an unsigned number with an optional fraction. Commas are accepted only between groups of three
// digits. It also matches the empty text, which atom reports as an error.
var number = regexp.MustCompile(`^(\d{1,3}(,\d{3})+|\d+)?(\.\d+)?`)

// atom parses a number, or an expression in parentheses.
func (p *parser) atom() (*big.Rat, error) {
	c := p.peek()
	if c == '(' {
		p.pos++
		v, err := p.nested(p.sum)
		if err != nil {
			return nil, err
		}
		if p.peek() != ')' {
			return nil, errors.New("a closing parenthesis is missing")
		}
		p.pos++
		return v, nil
	}
	digits := number.FindString(p.text[p.pos:])
	if digits == "" {
		if c == 0 {
			return nil, errors.New("a number is missing at the end")
		}
		return nil, fmt.Errorf("%q is not expected", c)
	}
	p.pos += len(digits)
	v, ok := new(big.Rat).SetString(strings.ReplaceAll(digits, ",", ""))
	if !ok {
		return nil, fmt.Errorf("%q is not a number", digits)
	}
	return v, nil
}

// apply calculates one operation and records it as a step. A result whose numerator or denominator exceeds
// maxBits is an error: the next operation could take too long.
func (p *parser) apply(a *big.Rat, op byte, b *big.Rat) (*big.Rat, error) {
	v := new(big.Rat)
	switch op {
	case '+':
		v.Add(a, b)
	case '-':
		v.Sub(a, b)
	case '*':
		v.Mul(a, b)
	case '/', '%':
		if b.Sign() == 0 {
			return nil, errZero
		}
		v.Quo(a, b)
		if op == '%' { // the remainder has the sign of b
			v.Sub(a, v.Mul(b, new(big.Rat).SetInt(floor(v))))
		}
	case '^':
		var err error
		if v, err = power(a, b); err != nil {
			return nil, err
		}
	}
	if v.Num().BitLen() > maxBits || v.Denom().BitLen() > maxBits {
		return nil, errBig
	}
	p.steps = append(p.steps, step{fmt.Sprintf("%s %s %s", operand(a), signs[op], operand(b)), decimal(v)})
	return v, nil
}

// signs are the operators as the answer shows them.
var signs = map[byte]string{'+': "+", '-': "−", '*': "×", '/': "÷", '%': "mod", '^': "^"}

// power returns a to the power of b. It estimates the size of the result before it calculates: the bits of the
// base times the exponent. Without that check a large base could occupy a processor and megabytes of memory
// before apply rejects the result.
func power(a, b *big.Rat) (*big.Rat, error) {
	if !b.IsInt() {
		return nil, errors.New("an exponent must be a whole number")
	}
	n := b.Num()
	if !n.IsInt64() || n.Int64() > maxPower || n.Int64() < -maxPower ||
		int(max(n.Int64(), -n.Int64()))*max(a.Num().BitLen(), a.Denom().BitLen()) > maxBits+maxPower {
		return nil, errBig
	}
	if n.Sign() < 0 && a.Sign() == 0 {
		return nil, errZero
	}
	e := new(big.Int).Abs(n)
	v := new(big.Rat).SetFrac(new(big.Int).Exp(a.Num(), e, nil), new(big.Int).Exp(a.Denom(), e, nil))
	if n.Sign() < 0 {
		v.Inv(v)
	}
	return v, nil
}

// floor returns the largest integer that is not above v, also for a negative v.
func floor(v *big.Rat) *big.Int {
	return new(big.Int).Div(v.Num(), v.Denom()) // Euclidean, and the denominator is positive
}

// decimal formats a number as an integer or a decimal. A number with more than maxDecimals decimals is rounded
// and gets a leading ≈; the answer then shows the exact fraction too.
func decimal(v *big.Rat) string {
	if v.IsInt() {
		return v.Num().String()
	}
	if n, exact := v.FloatPrec(); exact && n <= maxDecimals {
		return v.FloatString(n)
	}
	return "≈ " + v.FloatString(maxDecimals)
}

// operand formats a number as part of a step: in parentheses if it is negative or rounded, because a sign next
// to an operator is hard to read.
func operand(v *big.Rat) string {
	s := decimal(v)
	if v.Sign() < 0 || strings.HasPrefix(s, "≈") {
		return "(" + s + ")"
	}
	return s
}

// wordOperators replaces words and signs by operators, so that "3 times 4" and "20% of 50" are calculations.
// Longer ones are first, because the replacer prefers earlier pairs. The text must be in lower case.
var wordOperators = strings.NewReplacer(
	"×", "*", "÷", "/", "−", "-", "·", "*", "**", "^",
	" multiplied by ", " * ", " divided by ", " / ", " to the power of ", " ^ ", " modulo ", " % ",
	"% of ", "/100 * ", " percent of ", "/100 * ", " squared", "^2", " cubed", "^3",
	" plus ", " + ", " minus ", " - ", " times ", " * ", " over ", " / ", " mod ", " % ",
)

// expression matches the longest candidates for a calculation: they start with a digit, a point, a sign or a
// parenthesis.
var expression = regexp.MustCompile(`[-+(]*[\d.][-+*/%^().,\d \t]*`)

// findExpression returns the longest calculation in a text, or "". It shortens each candidate from the right
// until it is valid and has at least one operation, so the period of a sentence or an unmatched parenthesis is
// dropped, and a number alone isn't a calculation. A division by zero and a number that is too large count as
// calculations, because the answer explains those errors.
func findExpression(text string) string {
	best := ""
	for _, c := range expression.FindAllString(wordOperators.Replace(strings.ToLower(text)), -1) {
		for c = strings.TrimRight(c, " \t.,"); c != "" && len(c) <= maxExpression; c = strings.TrimRight(c[:len(c)-1], " \t.,") {
			_, steps, err := calculate(c)
			if (err == nil && len(steps) > 0) || errors.Is(err, errZero) || errors.Is(err, errBig) {
				break
			}
		}
		if len(c) > len(best) && len(c) <= maxExpression {
			best = c
		}
	}
	return best
}

// Package jsonscan decodes the JSON of streams several times faster than encoding/json, and exactly like it.
//
// A [Reader] decodes frames into a struct with json tags, as json.Unmarshal does. It reads the common form of JSON itself, in one pass and
// nearly without allocations, and passes anything unusual to encoding/json: an error, a key that is repeated or differs from the
// field's name in case, a number with a fraction, a value of the wrong type. So its errors are those of encoding/json. A [Writer] is its
// counterpart, for small structs such as the states of decoders. [New] returns a scanner, which is faster still, for the one or two
// kinds of frames whose bytes nearly always look the same.
//
// Invariants
//
//   - Whatever this package accepts by itself, encoding/json accepts too, with the same result. Fuzz tests compare them.
//   - A Reader refuses and accepts what encoding/json refuses and accepts.
package jsonscan

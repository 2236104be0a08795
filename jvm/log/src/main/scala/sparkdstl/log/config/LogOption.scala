// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.config

/**
 * One option: the source of its parsing, its validation, the reference in `docs/` and the Python helper.
 *
 * @param key below [[LogOptions.Prefix]]
 * @param default in the notation of a user; `None` if `defaultText` describes it
 * @param counterpart Flink's option of the same meaning
 */
final case class LogOption[T](
    key: String,
    optionType: OptionType[T],
    default: Option[String],
    defaultText: String,
    doc: String,
    counterpart: Option[String]
)

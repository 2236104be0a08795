package sparkdstl.log.config

/**
 * One option: everything that parsing, validation, the reference in `docs/` and the Python helper say about it.
 *
 * @param key         below [[LogOptions.Prefix]]
 * @param default     in the notation a user would write, or `None` with `defaultText` in words
 * @param counterpart Flink's option of the same meaning, for those who know it
 */
final case class LogOption[T](
    key: String,
    optionType: OptionType[T],
    default: Option[String],
    defaultText: String,
    doc: String,
    counterpart: Option[String]
)

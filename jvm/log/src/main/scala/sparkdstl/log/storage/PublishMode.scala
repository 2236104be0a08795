package sparkdstl.log.storage

/** How an object comes to appear whole or not at all. */
sealed abstract class PublishMode(val name: String)

object PublishMode {

  /** As the file system suggests: [[Direct]] where it is known to publish on close, [[Rename]] elsewhere. */
  case object Auto extends PublishMode("auto")

  /** Written at its own path, by a file system that shows an object only once its stream was closed. */
  case object Direct extends PublishMode("direct")

  /** Written to a hidden file beside its path, then renamed. */
  case object Rename extends PublishMode("rename")

  val values: Seq[PublishMode] = Seq(Auto, Direct, Rename)
}

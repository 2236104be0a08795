package sparkdstl.log.storage

/** How an object comes to appear whole or not at all. */
sealed trait PublishMode

object PublishMode {

  /** As the file system suggests: [[Direct]] where it is known to publish on close, [[Rename]] elsewhere. */
  case object Auto extends PublishMode

  /** Written at its own path, by a file system that shows an object only once its stream was closed. */
  case object Direct extends PublishMode

  /** Written to a hidden file beside its path, then renamed. */
  case object Rename extends PublishMode
}

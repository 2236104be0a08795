// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.storage

/** The way in which an object becomes visible atomically. */
sealed trait PublishMode

object PublishMode {

  /** [[Direct]] on file systems that are known to publish on close, [[Rename]] on others. */
  case object Auto extends PublishMode

  /** Written directly to its path, on a file system that publishes an object when its stream is closed. */
  case object Direct extends PublishMode

  /** Written to a hidden file in the same directory, then renamed. */
  case object Rename extends PublishMode
}

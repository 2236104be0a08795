package sparkdstl.log.worker

import sparkdstl.log.format._
import sparkdstl.log.upload.{ChunkFileEncoder, ChunkPosition, EncodedFile}
